import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isPortTaken } from "../platform/listener.ts";
import { ownComposeFile, ownEnvFile } from "./compose-file.ts";
import { readServices, type SetupServices } from "./compose-services.ts";
import { findTracked, findUnignored } from "./git-checkout.ts";
import { type GitHost, isGitHost } from "./git-host.ts";
import { findMachine, type Machine } from "./machine.ts";
import { planFiles } from "./plan-files.ts";
import type { PlannedFile } from "./planned-file.ts";
import { refuseForContainer, type SetupProject } from "./project.ts";
import { candidates, findReverseProxy, type ReverseProxy } from "./reverse-proxy.ts";
import { SetupError } from "./setup-error.ts";
import { systemdUnitName } from "./systemd-unit.ts";
import { findAddress, parsePublicUrl, type WebhookAddress } from "./webhook-address.ts";

/** Questions for what only a person can know. Each is asked only if the answer was not found; null is no answer. */
export interface Questions {
  readonly askUrl: () => Promise<URL | null>;
  readonly askHost: (hostname: string) => Promise<GitHost | null>;
  readonly askService: (names: readonly string[]) => Promise<string | null>;
}

/** Options of the command line. */
export interface Given {
  readonly url: URL | null;
  readonly host: GitHost | null;
  readonly service: string | null;
}

/** Everything known about a project, and the files that it should have. */
export interface Setup {
  readonly project: SetupProject;
  /** null: the project has no compose file. */
  readonly proxy: ReverseProxy | null;
  readonly services: SetupServices;
  readonly address: WebhookAddress;
  readonly host: GitHost | null;
  readonly machine: Machine;
  readonly files: readonly PlannedFile[];
}

/**
 * Finds what `project` needs to have a Hotpush of its own, and asks for the rest. Nothing is written.
 *
 * @param services those of its compose files
 * @throws SetupError if it cannot be set up as it is
 */
export async function planSetup(
  project: SetupProject,
  services: SetupServices,
  env: NodeJS.ProcessEnv,
  given: Given,
  questions: Questions,
): Promise<Setup> {
  refuseForContainer(project);
  const { root, composeFiles } = project;
  const service = await findService(project, services, given, questions);
  const proxy = composeFiles.length > 0 ? findReverseProxy(services, service ?? undefined) : null;
  const secretFiles = [".env", proxy === null ? systemdUnitName : ownEnvFile];
  await refuseTracked(root, secretFiles);
  const unignored = await findUnignored(root, secretFiles);
  const known = knownUrl(project);
  const url = given.url ?? known ?? (await questions.askUrl());
  const host = await findHost(project, given, questions);
  const isNewUrl = given.url !== null && given.url.href !== known?.href;
  const site = isNewUrl ? null : project.env.SITE || null;
  const isFree = (port: number) => isOurs(root, port) || !isPortTaken(port);
  const address = findAddress({ proxy: proxy ?? { kind: "none" }, url, site, isFree });
  const machine = findMachine(root, env, project.env.HOTPUSH_USER);
  const chosen = { service, host: host === project.host ? null : host, isNewUrl };
  const hasCaddy = Object.hasOwn(services, "caddy");
  const files = planFiles({ project, proxy, address, machine, host, chosen, unignored, hasCaddy });
  return { project, proxy, services, address, host, machine, files };
}

/**
 * Reads the services of the project's own compose files; none without such a file.
 *
 * @throws SetupError if compose rejects them, or one is a Hotpush: two in one project would both deploy every push
 */
export async function readOwnServices(
  { root, composeFiles }: SetupProject,
  env: NodeJS.ProcessEnv,
): Promise<SetupServices> {
  const services = composeFiles.length > 0 ? await readServices(root, composeFiles, env) : {};
  if (!Object.hasOwn(services, "hotpush")) return services;
  throw new SetupError(
    `Your compose file has a service called hotpush, so this project is set up by hand. To let init do it, remove that service (and ${existsSync(join(root, ownComposeFile)) ? `${ownComposeFile} from COMPOSE_FILE, if it is there` : "its proxy, if it has one"}), and run this again; to check the project as it is: hotpush doctor`,
  );
}

/** Their secrets would be pushed. */
async function refuseTracked(root: string, names: readonly string[]): Promise<void> {
  const [first] = await findTracked(root, names);
  if (first === undefined) return;
  throw new SetupError(
    `${first} is in the repository, so a secret written to it would be pushed. Remove it from git: git rm --cached ${first} && git commit -m "Keep ${first} out of git", and push; the file itself stays.`,
  );
}

/** The service that is the app, if a person had to name it: on the command line, in .env, or now. */
async function findService(
  { env }: SetupProject,
  services: SetupServices,
  { service }: Given,
  { askService }: Questions,
): Promise<string | null> {
  const wanted = service ?? (env.HOTPUSH_APP || null);
  const names = candidates(services);
  if (wanted !== null) {
    if (names.includes(wanted)) return wanted;
    throw new SetupError(
      `${wanted} is not a service that publishes a port. Those that do: ${names.join(", ") || "none"}.`,
    );
  }
  return names.length > 1 && findReverseProxy(services).kind === "new-caddy" ? await askService(names) : null;
}

/** Whether the Caddy of an earlier run has the port. */
function isOurs(root: string, port: number): boolean {
  const path = join(root, ownComposeFile);
  return existsSync(path) && readFileSync(path, "utf8").includes(`"${port}:${port}"`);
}

function knownUrl({ env }: SetupProject): URL | null {
  return env.WEBHOOK_URL ? parsePublicUrl(env.WEBHOOK_URL) : null;
}

async function findHost(
  project: SetupProject,
  given: Given,
  { askHost }: Questions,
): Promise<GitHost | null> {
  const { remote, env, host } = project;
  if (given.host !== null) return given.host;
  if (env.HOTPUSH_GIT_HOST && isGitHost(env.HOTPUSH_GIT_HOST)) return env.HOTPUSH_GIT_HOST;
  return host ?? (remote === null ? null : await askHost(remote.hostname));
}
