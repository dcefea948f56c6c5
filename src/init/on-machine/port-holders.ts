import { readFileSync, realpathSync } from "node:fs";
import { machineProject, machineServices } from "../../config/machine-part.ts";
import { listPublishers, type Publisher } from "../../machine-part/engine.ts";
import { isPortTaken, listeningProcess } from "../../platform/listener.ts";
import { SetupError } from "../setup-error.ts";

/**
 * The services of the project in `root` that have ports which Caddy needs.
 *
 * @param ports all that Caddy needs, also those that it has
 * @throws SetupError if somebody else has one
 */
export async function findPortHolders(
  root: string,
  ports: readonly number[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const published = (await Promise.all(ports.map((port) => listPublishers(port, env)))).flat();
  const others = published.filter((one) => !isOurCaddy(one));
  const foreign = others.find(({ directory }) => directory === "" || real(directory) !== real(root));
  if (foreign !== undefined) throw takenError(foreign.port, containerText(foreign));
  const taken = ports.find((port) => isPortTaken(port) && !published.some((one) => one.port === port));
  if (taken !== undefined) throw takenError(taken, programText(taken));
  return [...new Set(others.map(({ service }) => service))];
}

function isOurCaddy({ project, service }: Publisher): boolean {
  return project === machineProject && service === machineServices.caddy;
}

function containerText({ container, project, directory }: Publisher): string {
  const of = project === "" ? "" : ` of the compose project ${project} in ${directory}`;
  return `the container ${container}${of}`;
}

/** The command line may have secrets in it. */
function programText(port: number): string {
  const pid = listeningProcess(port)?.pid;
  if (pid === undefined) return `another program`;
  try {
    return `the program ${readFileSync(`/proc/${pid}/comm`, "utf8").trim()} (process ${pid})`;
  } catch {
    return `process ${pid}`;
  }
}

function takenError(port: number, holder: string): SetupError {
  const wayOut =
    port === 80 || port === 443
      ? "Stop it; or, if a proxy of your own stays in front, choose other ports: HTTP_PORT=8080 HTTPS_PORT=8443 hotpush init"
      : "Stop it, or choose another place: hotpush init --url https://<host name>, or --at <service>=:<port>";
  return new SetupError(`Caddy of the machine needs port ${port}, which ${holder} has. ${wayOut}`);
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
