import type { ComposeService, ComposeVolume } from "../../platform/compose/model.ts";
import { ProblemError } from "../../problems.ts";

/**
 * How a new container takes the place of the old one.
 * - `roll`: both run for a while; the live file switches the proxy, if it reads one for this service.
 * - `scale`: both run for a while; the proxy switches by itself (Traefik and others that watch Docker's health).
 * - `recreate`: the old one stops first, because two cannot run; the service is down in between.
 * - `run-once`: it runs to its end, and others wait for that (a migration).
 */
export type Replacement =
  | { readonly how: "roll"; readonly isByLabel?: boolean }
  | { readonly how: "scale" | "run-once" }
  | { readonly how: "recreate"; readonly reason: string };

/**
 * Decides it from the compose file. A service that another one waits for runs once, whatever else the file says. For
 * the others, the label `hotpush.rollout` (`live`, `scale` or `recreate`) decides, or else whether two containers would
 * clash, or write to one volume: nothing but a label shows that they may.
 *
 * @throws ProblemError `compose_invalid` if the label has another value
 */
export function replacementOf(service: ComposeService, isAwaited: boolean): Replacement {
  const label = service.labels?.["hotpush.rollout"];
  if (label !== undefined && !["live", "scale", "recreate"].includes(label)) {
    const detail = `The label hotpush.rollout is "${label}", not one of live, scale, recreate.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
  if (isAwaited) return { how: "run-once" };
  if (label === "recreate") return { how: "recreate", reason: "label hotpush.rollout=recreate" };
  const clash = clashOfTwo(service);
  if (clash !== null) return { how: "recreate", reason: clash };
  if (label !== undefined) return label === "scale" ? { how: "scale" } : { how: "roll", isByLabel: true };
  const volume = writableVolume(service);
  return volume === null ? { how: "roll" } : { how: "recreate", reason: `volume ${volume.target}` };
}

/** Sockets, clocks and other parts of the machine, the live files, and single files of configuration: no data is there. */
const noData =
  /^\/(?:var\/)?run(?:\/|$)|\.sock$|^\/etc\/(?:localtime|timezone|hosts|ssl|letsencrypt)|^\/(?:dev|proc|sys)(?:\/|$)|\.(?:ya?ml|json|toml|ini|conf|cfg|cnf|env|xml|properties|pem|crt|key|sh|js|ts|php|html?)$/;

/**
 * The first volume of a service that its old and its new container would both write to, or null. Anonymous volumes do not
 * count, because each container has its own.
 */
export function writableVolume({ volumes = [] }: ComposeService): ComposeVolume | null {
  const isWritten = ({ type, source, target, read_only: isReadOnly = false }: ComposeVolume) =>
    (type === "volume" || type === "bind") &&
    Boolean(source) &&
    !isReadOnly &&
    ![source ?? "", target].some((path) => noData.test(path));
  return volumes.find(isWritten) ?? null;
}

/** Why the engine could not run a second container, or null. */
function clashOfTwo(service: ComposeService): string | null {
  const port = service.ports?.find(
    ({ published }) => published !== undefined && published !== "" && published !== "0",
  );
  if (port) return `publishes port ${port.published}`;
  if (service.container_name) return `container_name ${service.container_name}`;
  if (service.network_mode && !["bridge", "default", "none"].includes(service.network_mode)) {
    return `network_mode ${service.network_mode}`;
  }
  const address = Object.values(service.networks ?? {}).find(
    (network) => network?.ipv4_address ?? network?.ipv6_address,
  );
  return address ? `fixed address ${address.ipv4_address ?? address.ipv6_address}` : null;
}
