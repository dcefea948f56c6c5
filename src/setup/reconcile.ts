import { lstatSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type ProjectFiles, projectNames } from "#config/project-files";
import {
  adminSocket,
  caddyMount,
  isProjectName,
  type ServerFiles,
  serverCommands,
  serverServices,
  serviceAlias,
} from "#config/server";
import type { Log } from "#log";
import { pause, repeat } from "#platform/async";
import { hostOf } from "#platform/docker/containers";
import type { Engine } from "#platform/docker/engine";
import { attempt, ownUid, replaceFile, statOf } from "#platform/files";
import {
  listForeignDirectory,
  makeForeignDirectory,
  readForeignFile,
  replaceForeignFile,
} from "#platform/foreign-files";
import { type HttpAnswer, sendHttp } from "#platform/http";
import { requestsDirectory } from "#rollout/requests";
import { listByFilter } from "./machine.ts";
import { type CaddyContainer, keepNetworks, listCaddyContainers } from "./networks.ts";
import { readIfThere } from "./planned-file.ts";
import { listSites, servicesIn } from "./sites.ts";

export interface ReconcileOptions {
  readonly files: ServerFiles;
  /** The live directory, as this process sees it. */
  readonly livePath: string;
  readonly engine: Engine;
  readonly projects: Pick<ProjectFiles, "list">;
  readonly log: Log;
  readonly stopping: AbortSignal;
}

/** What can be wrong, each for itself. */
type Subject = "engine" | "networks" | "live files" | "caddy";

/** One look in so many also looks for the containers that live files name. */
const looksPerRenewal = 5;

/**
 * Looks every second whether the server is as its files say, and makes it so: each project has its network, with Caddy on
 * it, and its live directory, and Caddy has the configuration in the Caddyfile and the sites. A look that finds nothing to do
 * costs one request to the engine, and every few seconds a second one.
 */
export function startReconciling(options: ReconcileOptions) {
  const { files, livePath, engine, projects, stopping, log } = options;
  const faults = new Map<Subject, string>();
  const loadChanges = followCaddyFiles(options, (ms) => pause(ms, stopping));
  let looks = 0;

  async function look(): Promise<void> {
    const caddies = await listCaddyContainers(engine);
    setFault("engine", null);
    await keep("networks", async () => {
      const joined = projectNames(files.projectsPath).filter(isProjectName);
      // Caddy stays on the network of a project whose site is still there.
      return (await keepNetworks(engine, caddies, joined, listSites(files))).join(" ") || null;
    });
    await keep("live files", async () => {
      // Left by a process that was killed during a reload, or never written.
      if (readIfThere(join(livePath, "closing")) !== "no") writeClosing(livePath, "no");
      openRequestsDirectory(livePath);
      for (const { name, settings } of projects.list()) {
        const site = readIfThere(join(files.sitesPath, `${name}.caddy`)) ?? "";
        seedLiveDirectory(livePath, { name, repoPath: settings.repoPath }, site);
      }
      const names = projects.list().map(({ name }) => name);
      if (looks++ % looksPerRenewal === 0) await renewLiveFiles(engine, livePath, names);
      return null;
    });
    await keep("caddy", () => loadChanges(caddies));
  }

  async function keep(subject: Subject, work: () => Promise<string | null>): Promise<void> {
    try {
      setFault(subject, await work());
    } catch (error) {
      setFault(subject, (error as Error).message);
    }
  }

  /** Logs a fault once, and its end. */
  function setFault(subject: Subject, fault: string | null): void {
    if ((faults.get(subject) ?? null) === fault) return;
    if (fault === null) {
      faults.delete(subject);
      log.info({ event: "server.recovered", subject }, `Recovered: ${subject}`);
    } else {
      faults.set(subject, fault);
      log.error({ event: "server.faulty", subject }, fault);
    }
  }

  const looking = repeat(look, {
    intervalMs: 1_000,
    onFault: (error) => setFault("engine", (error as Error).message),
  });
  looking.start();
  looking.now();
  stopping.addEventListener("abort", looking.stop);
  return {
    /** A sentence for each thing that is not as it should be. */
    faults: (): readonly string[] => [...faults.values()],
  };
}

/** Caddy starts and reads its files within so many looks. */
const patienceLooks = 5;

/**
 * Makes the look at Caddy's files: it loads them into Caddy if they changed. A change counts once two looks in a row agree,
 * because a file that somebody is writing is read half.
 *
 * @returns a function that returns what is wrong with Caddy's configuration, or null; it throws the system's error if a file
 * cannot be read
 */
export function followCaddyFiles(
  { files, livePath }: Pick<ReconcileOptions, "files" | "livePath">,
  wait: (ms: number) => Promise<void>,
): (caddies: readonly CaddyContainer[]) => Promise<string | null> {
  let seen = "";
  let loaded = "";
  let unanswered = 0;
  let fault: string | null = null;

  return async (caddies) => {
    if (caddies.length === 0)
      return `Caddy does not run, so no project is served. Run: ${serverCommands(files).start}`;
    const before = seen;
    const paths = [
      files.caddyfile,
      ...listSites(files).map((name) => join(files.sitesPath, `${name}.caddy`)),
    ];
    const stamps = paths.map((path) => {
      const { ino, size, mtimeMs } = statSync(path);
      return [path, ino, size, mtimeMs].join(" ");
    });
    // A new container has read the files itself. Loading them again changes nothing, but brings its answer.
    seen = [...caddies.map(({ id }) => id), ...stamps].join("\n");
    if (seen !== before || seen === loaded) return fault;
    const answer = await load(readFileSync(files.caddyfile, "utf8"), livePath, wait);
    unanswered = answer === null ? unanswered + 1 : 0;
    if (unanswered > patienceLooks)
      fault = `Caddy does not answer. Its log says why. See: ${serverCommands(files).logsOf(serverServices.caddy)}`;
    if (answer === null) return fault;
    loaded = seen;
    if (answer.status === 200) fault = null;
    else {
      const { error } = JSON.parse(answer.body.toString()) as { readonly error: string };
      fault = `Caddy rejects its configuration and keeps the old one, but only until it restarts. Correct the Caddyfile or the site: ${error.replaceAll(caddyMount, files.path)}`;
    }
    return fault;
  };
}

/** Most kept connections are used again within this time. */
const closingMs = 500;
/** Caddy gets the new configuration ready before it replaces the old one. */
const answerTimeoutMs = 60_000;

/**
 * Loads the text of a Caddyfile into Caddy, which does nothing if it is the one in force. If it is rejected, the old
 * configuration stays in force.
 *
 * Caddy replaces its servers with new ones, and Go's HTTP server then closes its kept connections, even if a request is just on
 * its way. So clients are asked before, with the header `Connection: close`, to close them: sites read the file `closing`.
 */
async function load(
  text: string,
  livePath: string,
  wait: (ms: number) => Promise<void>,
): Promise<HttpAnswer | null> {
  writeClosing(livePath, "yes");
  try {
    await wait(closingMs);
    const headers = { host: "localhost", "content-type": "text/caddyfile" };
    return await sendHttp(
      { socketPath: join(livePath, adminSocket), path: "/load" },
      { method: "POST", headers, body: text, timeoutMs: answerTimeoutMs },
    ).catch(() => null);
  } finally {
    writeClosing(livePath, "no");
  }
}

/** Sites read this file on each request, so it must be there. @throws the system's error */
function writeClosing(livePath: string, text: "yes" | "no"): void {
  replaceFile(join(livePath, "closing"), text, { mode: 0o644, owner: null });
}

/** Caddy may run as any user. The directory around it is closed to all others. */
const directoryMode = 0o755;

/**
 * Makes the directory of Caddy's logs of requests. Roll-outs read them as the owners of the checkouts, but if Caddy was first,
 * it has closed the directory to them.
 *
 * @throws the system's error
 */
export function openRequestsDirectory(livePath: string): void {
  makeForeignDirectory(join(livePath, requestsDirectory), { mode: directoryMode, owner: null });
}

/**
 * Makes the live directory of a project, which belongs to the owner of its checkout, and the live files that its site reads.
 * A new one has the service's name on the project's network in it, so that Caddy finds the service before its first roll-out.
 * Files that are there stay as they are. Without a checkout, nothing is made.
 *
 * @param site the text of its site, or ""
 * @throws the system's error
 */
export function seedLiveDirectory(
  livePath: string,
  { name, repoPath }: { readonly name: string; readonly repoPath: string },
  site: string,
): void {
  const directory = join(livePath, name);
  const checkout = statOf(repoPath);
  if (checkout === null) return;
  // If the checkout has changed hands, so does the directory. A roll-out can replace any file in it.
  const owner = ownUid() === 0 ? { uid: checkout.uid, gid: checkout.gid } : null;
  makeForeignDirectory(directory, { mode: directoryMode, owner });
  for (const { project, service } of servicesIn(site))
    if (project === name && lstatSync(join(directory, service), { throwIfNoEntry: false }) === undefined)
      replaceForeignFile(join(directory, service), serviceAlias(service, name), { mode: 0o644, owner });
}

/** A project has a live file for each replica. */
const mostFiles = 1_000;
const longestNameBytes = 1_000;

/**
 * Writes the service's own name into live files that name a container which is gone. After `docker compose down` and `up` by
 * a person, no roll-out has done it, and Caddy would try the old name for seconds before each request.
 *
 * @throws the system's error, or ProblemError `docker_unreachable`
 */
export async function renewLiveFiles(
  engine: Engine,
  livePath: string,
  projects: readonly string[],
): Promise<void> {
  const files = projects.flatMap((project) => filesNamingContainers(livePath, project));
  if (files.length === 0) return;
  const present = new Set((await listByFilter(engine)).map(hostOf));
  for (const { path, text, alias } of files) {
    // A roll-out may have written another name since.
    if (present.has(text) || readLiveFile(path) !== text) continue;
    const { uid, gid } = lstatSync(path);
    replaceForeignFile(path, alias, { mode: 0o644, owner: ownUid() === 0 ? { uid, gid } : null });
  }
}

/** Live files with the name of a container: neither that of a service, nor that of nobody, which a service without replicas has. */
function filesNamingContainers(livePath: string, project: string) {
  const directory = join(livePath, project);
  // The directory belongs to the owner of the checkout, and may be gone.
  const all: readonly string[] = attempt(() => listForeignDirectory(directory, mostFiles), []);
  const names = all.filter((name) => !name.startsWith("."));
  return names
    .map((name) => {
      const path = join(directory, name);
      // `web` for the file of its second replica, `web.2`.
      const service = name.replace(/\.\d+$/, "");
      const alias = serviceAlias(names.includes(service) ? service : name, project);
      return { path, text: readLiveFile(path), alias };
    })
    .filter(({ text }) => /^[a-zA-Z0-9][\w.-]*$/.test(text) && !/\.(?:internal|invalid)$/.test(text));
}

function readLiveFile(path: string): string {
  const read = () => readForeignFile(path, { mostBytes: longestNameBytes, followsLinks: false });
  return attempt(read, null)?.toString().trim() ?? "";
}
