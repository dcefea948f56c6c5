import type { ComposePort } from "../../platform/compose/model.ts";
import { warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";
import type { Role } from "./roles.ts";

/** Two containers cannot listen on one port of the host, so the old one has to go first. */
export const portsLint = lintCheck(
  "lint-ports",
  "no app publishes a fixed port",
  "only the proxy publishes fixed ports",
  ({ apps, roles }) => {
    const isBehindProxy = roles.some(({ kind }) => kind === "proxy");
    const own = isBehindProxy ? roles.filter(({ kind }) => kind === "hotpush") : [];
    return [...apps, ...own].flatMap(({ name, service }) =>
      (service.ports ?? []).filter(isFixed).map(({ published, target }) => {
        const text = `${name} publishes port ${published}, so it is away while it is replaced. Let the proxy publish it, and reach ${name}:${target} itself.`;
        return warning(text, { change: `services.${name}.ports: remove ${published}:${target}` });
      }),
    );
  },
);

/** A name is for one container at a time. */
export const containerNameLint = lintCheck(
  "lint-container-name",
  "no app has a fixed container name",
  "compose names the containers",
  (project) =>
    besides(project.roles).flatMap(({ name, service: { container_name } }) => {
      if (container_name === undefined) return [];
      const text = `${name} has the container_name ${container_name}, which two containers cannot have, so it is away while it is replaced.`;
      return [warning(text, { change: `services.${name}.container_name: remove ${container_name}` })];
    }),
);

/** An address, or the network of another, is for one container at a time. */
export const networkLint = lintCheck(
  "lint-network",
  "no app is bound to a fixed address or another's network",
  "each has a network of its own",
  (project) =>
    besides(project.roles).flatMap(({ name, service }) => {
      const { network_mode, networks } = service;
      if (network_mode && !["bridge", "default", "none"].includes(network_mode)) {
        const text = `${name} is in the network of ${network_mode}, where two would clash, so it is away while it is replaced.`;
        return [warning(text, { change: `services.${name}.network_mode: remove ${network_mode}` })];
      }
      return Object.entries(networks ?? {}).flatMap(([network, settings]) => {
        const address = settings?.ipv4_address ?? settings?.ipv6_address;
        if (!address) return [];
        const text = `${name} has the fixed address ${address}, which two cannot have, so it is away while it is replaced.`;
        return [
          warning(text, { change: `services.${name}.networks.${network}: remove the address ${address}` }),
        ];
      });
    }),
);

/** Apps and Hotpush itself. */
function besides(roles: readonly Role[]): readonly Role[] {
  return roles.filter(({ kind, label }) => (kind === "app" || kind === "hotpush") && label !== "recreate");
}

function isFixed({ published }: ComposePort): boolean {
  return published !== undefined && published !== "" && published !== "0";
}
