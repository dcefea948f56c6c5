import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readServices, type Services } from "./compose-services.ts";
import { type GitHost, isGitHost } from "./git-host.ts";
import { findUnignored } from "./gitignore.ts";
import { findMachine, isPortTaken, type Machine } from "./machine.ts";
import { planFiles } from "./plan-files.ts";
import type { PlannedFile } from "./planned-file.ts";
import { findProject, ownComposeFile, ownEnvFile, type Project } from "./project.ts";
import { refuseMisread, refuseUnfit } from "./refusals.ts";
import { candidates, type Front, findFront } from "./reverse-proxy.ts";
import { SetupError } from "./setup-error.ts";
import { systemdUnitName } from "./systemd-unit.ts";
import { type Address, findAddress, parseAddress } from "./webhook-address.ts";

/** What only a person can know; each is called where it could not be found out, and may give null: no answer. */
export interface Questions {
  readonly askUrl: () => Promise<URL | null>;
  readonly askHost: (hostname: string) => Promise<GitHost | null>;
  readonly askService: (names: readonly string[]) => Promise<string | null>;
}

/** What a person has said on the command line. */
export interface Given {
  readonly url: URL | null;
  readonly host: GitHost | null;
  readonly service: string | null;
}

/** Everything that is known of a project, and the files that it should have. */
export interface Setup {
  readonly project: Project;
  /** null: the project has no compose file. */
  readonly front: Front | null;
  readonly services: Services;
  readonly address: Address;
  readonly host: GitHost | null;
  readonly machine: Machine;
  readonly files: readonly PlannedFile[];
}

/**
 * Finds out what the project around `directory` needs, and asks for what cannot be found out. Nothing is written.
 *
 * @throws SetupError where it cannot be set up as it is
 */
export async function planSetup(
  directory: string,
  env: NodeJS.ProcessEnv,
  given: Given,
  questions: Questions,
): Promise<Setup> {
  const project = await findProject(directory);
  refuseMisread(project);
  const services = project.composeFiles.length > 0 ? await readServices(project, env) : {};
  refuseUnfit(project, services);
  const service = await findService(project, services, given, questions);
  const front = project.composeFiles.length > 0 ? findFront(services, service ?? undefined) : null;
  const secretFiles = [".env", front === null ? systemdUnitName : ownEnvFile];
  const unignored = await findUnignored(project.root, secretFiles);
  const known = knownUrl(project);
  const url = given.url ?? known ?? (await questions.askUrl());
  const host = await findHost(project, given, questions);
  const isNewUrl = given.url !== null && given.url.href !== known?.href;
  const site = isNewUrl ? null : project.env.SITE || null;
  const isFree = (port: number) => isOurs(project, port) || !isPortTaken(port);
  const address = findAddress({ front: front ?? { kind: "none" }, url, site, isFree });
  const machine = findMachine(project.root, env, project.env.HOTPUSH_USER);
  const chosen = { service, host: host === project.host ? null : host, isNewUrl };
  const hasCaddy = Object.hasOwn(services, "caddy");
  const files = planFiles({ project, front, address, machine, host, chosen, unignored, hasCaddy });
  return { project, front, services, address, host, machine, files };
}

/** The service that is the app, where that had to be said: on the command line, in .env, or now. */
async function findService(
  { env }: Project,
  services: Services,
  { service }: Given,
  { askService }: Questions,
): Promise<string | null> {
  const wanted = service ?? (env.HOTPUSH_APP || null);
  const names = candidates(services);
  if (wanted !== null) {
    if (names.includes(wanted)) return wanted;
    throw new SetupError(
      `${wanted} is no service that publishes a port. Those that do: ${names.join(", ") || "none"}.`,
    );
  }
  return names.length > 1 && findFront(services).kind === "new-caddy" ? await askService(names) : null;
}

/** Whether it is the Caddy of an earlier run that has the port. */
function isOurs({ root }: Project, port: number): boolean {
  const path = join(root, ownComposeFile);
  return existsSync(path) && readFileSync(path, "utf8").includes(`"${port}:${port}"`);
}

function knownUrl({ env }: Project): URL | null {
  return env.WEBHOOK_URL ? parseAddress(env.WEBHOOK_URL) : null;
}

async function findHost(project: Project, given: Given, { askHost }: Questions): Promise<GitHost | null> {
  const { remote, env, host } = project;
  if (given.host !== null) return given.host;
  if (env.HOTPUSH_GIT_HOST && isGitHost(env.HOTPUSH_GIT_HOST)) return env.HOTPUSH_GIT_HOST;
  return host ?? (remote === null ? null : await askHost(remote.hostname));
}
