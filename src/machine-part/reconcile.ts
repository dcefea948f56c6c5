import { readFileSync } from "node:fs";
import { internalPort, type MachineFiles } from "../config/machine-part.ts";
import { isProjectName, type ProjectFiles, projectNames } from "../config/project-files.ts";
import type { Log } from "../log.ts";
import type { Engine } from "../platform/docker/engine.ts";
import { kindOf } from "../platform/files.ts";
import { pause } from "../platform/keep-trying.ts";
import { repeat } from "../platform/repeat.ts";
import { followCaddyFiles, listSites, sitePath } from "./follow-caddy-files.ts";
import { openRequestsDirectory, seedLiveDirectory } from "./live-directories.ts";
import { writeClosing } from "./load-caddyfile.ts";
import { type CaddyContainer, joinNetworks, listCaddyContainers } from "./project-networks.ts";
import { renewLiveFiles } from "./renew-live-files.ts";

export interface ReconcileOptions {
  readonly files: MachineFiles;
  /** The live directory, as this process sees it. */
  readonly livePath: string;
  readonly engine: Engine;
  readonly projects: Pick<ProjectFiles, "list">;
  readonly log: Log;
  readonly stopping: AbortSignal;
  readonly intervalMs?: number;
}

/** What keeps the machine part as its files say. */
export interface Reconciling {
  /** A sentence for each thing that is not as it should be. */
  readonly faults: () => readonly string[];
}

/** What can be wrong, each for itself. */
type Subject = "machine part" | "networks" | "live files" | "names in live files" | "caddy";

/** So many looks pass between two looks at the containers that live files name. */
const looksPerRenewal = 5;

/**
 * Looks every second whether the machine part is as its files say, and makes it so: each project has its network, with Caddy on
 * it, and its live directory, and Caddy has the configuration in the Caddyfile and the sites. A look that finds nothing to do
 * costs one request to the engine. Every few seconds another request finds live files whose container is gone.
 */
export function startReconciling(options: ReconcileOptions): Reconciling {
  const { files, livePath, engine, projects, stopping, log, intervalMs = 1_000 } = options;
  const faults = new Map<Subject, string>();
  const loadChanges = followCaddyFiles({ files, livePath, pause: (ms) => pause(ms, stopping) });

  async function look(): Promise<void> {
    const caddies = await listCaddyContainers(engine);
    await attempt("networks", () => reconcileNetworks(options, caddies));
    await attempt("live files", () => seedLiveDirectories(options));
    await attempt("caddy", () => loadChanges(caddies));
    setFault("machine part", null);
  }

  async function renew(): Promise<void> {
    const names = projects.list().map(({ name }) => name);
    await attempt("names in live files", async () => {
      await renewLiveFiles(engine, livePath, names);
      return null;
    });
  }

  async function attempt(
    subject: Subject,
    work: () => string | null | Promise<string | null>,
  ): Promise<void> {
    try {
      setFault(subject, await work());
    } catch (error) {
      setFault(subject, messageOf(error));
    }
  }

  /** Logs a fault once, and its end. */
  function setFault(subject: Subject, fault: string | null): void {
    if ((faults.get(subject) ?? null) === fault) return;
    if (fault === null) {
      faults.delete(subject);
      log.info({ event: "machine.recovered", subject }, `The machine part is right again: ${subject}`);
    } else {
      faults.set(subject, fault);
      log.error({ event: "machine.faulty", subject }, fault);
    }
  }

  const onFault = (error: unknown) => setFault("machine part", messageOf(error));
  const all = [
    repeat(look, { intervalMs, onFault }),
    repeat(renew, { intervalMs: intervalMs * looksPerRenewal, onFault }),
  ];
  for (const { start, now, stop } of all) {
    start();
    now();
    stopping.addEventListener("abort", stop);
  }
  return { faults: () => [...faults.values()] };
}

async function reconcileNetworks(
  { engine, files }: ReconcileOptions,
  caddies: readonly CaddyContainer[],
): Promise<string | null> {
  const joined = projectNames(files.projectsPath).filter(isProjectName);
  // Caddy stays on the network of a project whose site is still there.
  const kept = listSites(files);
  const names = namesBetweenServices(files, kept);
  const faults = await joinNetworks(engine, caddies, { joined, kept, names });
  return faults.join(" ") || null;
}

/** By project. Those in its site, as `http://api.shop.internal:49080 {`: a site cannot take names of other projects. */
function namesBetweenServices(
  files: MachineFiles,
  projects: readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const all = projects.map((project) => {
    const pattern = new RegExp(`^http://([\\w-]+\\.${project}\\.internal):${internalPort} \\{`, "gm");
    const names = [...readText(sitePath(files, project)).matchAll(pattern)].map(([, name = ""]) => name);
    return [project, names] as const;
  });
  return new Map(all.filter(([, names]) => names.length > 0));
}

function seedLiveDirectories({ projects, files, livePath }: ReconcileOptions): null {
  // Left by a process that was killed during a reload, or never written.
  if (readText(`${livePath}/closing`) !== "no") writeClosing(livePath, "no");
  openRequestsDirectory(livePath);
  for (const { name, settings } of projects.list())
    seedLiveDirectory(livePath, { name, repoPath: settings.repoPath }, readText(sitePath(files, name)));
  return null;
}

/** Empty if there is no such file. */
function readText(path: string): string {
  return kindOf(path) === "file" ? readFileSync(path, "utf8") : "";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
