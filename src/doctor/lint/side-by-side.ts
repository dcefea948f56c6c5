import { keepsData } from "../../rollout/compose/keeps-data.ts";
import { replacementOf } from "../../rollout/compose/replacement.ts";
import { volumeOfOneWriter, writersOf } from "../../rollout/compose/two-writers.ts";
import { type Fault, problem, warning } from "../check.ts";
import type { LintedProject, Role } from "./lint.ts";

/** Two containers cannot listen on one port of the host, so the old one has to stop first. */
export function lintPorts(
  { name, service, kind, isRolled }: Role,
  { roles }: LintedProject,
): readonly Fault[] {
  const isBehindProxy = kind === "hotpush" && roles.some((role) => role.kind === "proxy");
  if (!isRolled && !isBehindProxy) return [];
  const fixed = (service.ports ?? []).filter(({ published }) => published && published !== "0");
  return fixed.map(({ published, target }) => {
    const text = `${name} publishes port ${published}, so it is away while it is replaced. Let the proxy publish the port, and send requests to ${name}:${target}.`;
    return warning(text, { change: `services.${name}.ports: remove ${published}:${target}` });
  });
}

/** Only one container at a time can have a name. */
export function lintContainerName(role: Role): readonly Fault[] {
  const { name, service } = role;
  if (service.container_name === undefined || !startsBeside(role)) return [];
  const text = `${name} has the container_name ${service.container_name}, which two containers cannot share, so it is away while it is replaced.`;
  return [warning(text, { change: `services.${name}.container_name: remove ${service.container_name}` })];
}

/** Only one container at a time can have an address, or use the ports of another's network. */
export function lintNetwork(role: Role): readonly Fault[] {
  const { name, service } = role;
  const { network_mode: mode, networks = {} } = service;
  if (!startsBeside(role)) return [];
  if (mode && !["bridge", "default", "none"].includes(mode)) {
    const text = `${name} is in the network of ${mode}, and two containers would clash there, so it is away while it is replaced.`;
    return [warning(text, { change: `services.${name}.network_mode: remove ${mode}` })];
  }
  return Object.entries(networks).flatMap(([network, settings]) => {
    const address = settings?.ipv4_address ?? settings?.ipv6_address;
    if (!address) return [];
    const text = `${name} has the fixed address ${address}, which two containers cannot share, so it is away while it is replaced.`;
    return [warning(text, { change: `services.${name}.networks.${network}: remove the address ${address}` })];
  });
}

/** Apps and Hotpush: the new container starts beside the old one. */
function startsBeside({ kind, label }: Role): boolean {
  return (kind === "app" || kind === "hotpush") && label !== "recreate";
}

/** During a roll-out, two containers of a service write to its volumes. */
export function lintVolumes(
  { name, service, kind, label }: Role,
  { model }: LintedProject,
): readonly Fault[] {
  const recreate = { change: `services.${name}.labels: hotpush.rollout: recreate` };
  const data = keepsData(service);
  if (data !== null && (label === "live" || label === "scale")) {
    const text = `${name} has data (${data}), but with its label hotpush.rollout=${label} two containers of it run at once, which destroys the data.`;
    return [problem(text, recreate)];
  }
  if (kind !== "app" || label !== null || replacementOf(service, false).how !== "roll") return [];
  const volume = volumeOfOneWriter(name, model.services);
  if (volume === null) return [];
  const doubt =
    writersOf(service) === "one"
      ? `${service.image} keeps a database or an index there, which tolerates only one, so the old container must stop first:`
      : "If a database is in it, the old container must stop first (if not, set the label to live):";
  const text = `${name} has the volume ${volume.target}: during a roll-out, two containers write to it for some seconds. ${doubt}`;
  return [warning(text, recreate)];
}
