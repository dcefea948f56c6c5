import type { ComposePort } from "../../platform/compose/model.ts";
import { warning } from "../check.ts";
import { lintCheck, type Role } from "./lint-check.ts";

/** Two containers cannot listen on one port of the host, so the old one has to stop first. */
export const portsLint = lintCheck(
  "lint-ports",
  "no app publishes a fixed port",
  "only the proxy publishes fixed ports",
  ({ apps, roles }) => {
    const isBehindProxy = roles.some(({ kind }) => kind === "proxy");
    const own = isBehindProxy ? roles.filter(({ kind }) => kind === "hotpush") : [];
    return [...apps, ...own].flatMap(({ name, service }) =>
      (service.ports ?? []).filter(isFixed).map(({ published, target }) => {
        const text = `${name} publishes port ${published}, so it is away while it is replaced. Let the proxy publish the port, and send requests to ${name}:${target}.`;
        return warning(text, { change: `services.${name}.ports: remove ${published}:${target}` });
      }),
    );
  },
);

/** Only one container at a time can have a name. */
export const containerNameLint = lintCheck(
  "lint-container-name",
  "no app has a fixed container name",
  "compose names the containers",
  (project) =>
    replacedBeside(project.roles).flatMap(({ name, service: { container_name } }) => {
      if (container_name === undefined) return [];
      const text = `${name} has the container_name ${container_name}, which two containers cannot share, so it is away while it is replaced.`;
      return [warning(text, { change: `services.${name}.container_name: remove ${container_name}` })];
    }),
);

/** Only one container at a time can have an address, or use the ports of another's network. */
export const networkLint = lintCheck(
  "lint-network",
  "no app is bound to a fixed address or another's network",
  "each has a network of its own",
  (project) =>
    replacedBeside(project.roles).flatMap(({ name, service }) => {
      const { network_mode, networks } = service;
      if (network_mode && !["bridge", "default", "none"].includes(network_mode)) {
        const text = `${name} is in the network of ${network_mode}, and two containers would clash there, so it is away while it is replaced.`;
        return [warning(text, { change: `services.${name}.network_mode: remove ${network_mode}` })];
      }
      return Object.entries(networks ?? {}).flatMap(([network, settings]) => {
        const address = settings?.ipv4_address ?? settings?.ipv6_address;
        if (!address) return [];
        const text = `${name} has the fixed address ${address}, which two containers cannot share, so it is away while it is replaced.`;
        const change = `services.${name}.networks.${network}: remove the address ${address}`;
        return [warning(text, { change })];
      });
    }),
);

/** Apps and Hotpush: the new container starts beside the old one. */
function replacedBeside(roles: readonly Role[]): readonly Role[] {
  return roles.filter(({ kind, label }) => (kind === "app" || kind === "hotpush") && label !== "recreate");
}

function isFixed({ published }: ComposePort): boolean {
  return published !== undefined && published !== "" && published !== "0";
}
