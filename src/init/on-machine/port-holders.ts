import { realpathSync } from "node:fs";
import { listPublishers } from "../../machine-part/engine.ts";
import { isPortTaken } from "../../platform/listener.ts";
import { SetupError } from "../setup-error.ts";

/**
 * The services of the project in `root` that have ports which Caddy needs.
 *
 * @param ports those that Caddy does not have yet
 * @throws SetupError if somebody else has one
 */
export async function findPortHolders(
  root: string,
  ports: readonly number[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const published = (await Promise.all(ports.map((port) => listPublishers(port, env)))).flat();
  const other = published.find(({ directory }) => directory === "" || real(directory) !== real(root));
  if (other !== undefined) throw takenError(other.port, `the container ${other.container}`);
  const isOurs = (port: number) => published.some((one) => one.port === port);
  const taken = ports.find((port) => isPortTaken(port) && !isOurs(port));
  if (taken !== undefined) throw takenError(taken, "another program");
  return [...new Set(published.map(({ service }) => service))];
}

function takenError(port: number, holder: string): SetupError {
  const wayOut =
    port === 80 || port === 443
      ? "Free it; or, if a proxy of your own stays in front, choose other ports: HTTP_PORT=8080 HTTPS_PORT=8443 hotpush init"
      : "Free it, or choose another place: hotpush init --url https://<host name>, or --at <service>=:<port>";
  return new SetupError(`Caddy of the machine needs port ${port}, which ${holder} has. ${wayOut}`);
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
