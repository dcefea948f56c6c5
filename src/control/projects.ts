import { liveCommit } from "../deployments/deployment.ts";
import { findLastGood, findRunning, listDeployments } from "../deployments/history.ts";
import { contextOf } from "./contexts.ts";
import { type DeploymentJson, deploymentJson, instant } from "./deployment-json.ts";
import { type PauseJson, pauseJson } from "./pause.ts";
import { type ControlContext, type ControlSources, jsonReply, type WholeRoute } from "./route.ts";
import { webAddress } from "./web-address.ts";

/** A project, as `hotpush projects --json` prints it. */
export interface ProjectJson {
  readonly name: string;
  readonly repoPath: string | null;
  /** Where people see its repository, by the remote of the checkout; null if that is not known. */
  readonly webUrl: string | null;
  readonly branches: readonly string[];
  /** What the last successful deployment has made live; null if there was none. */
  readonly live: LiveJson | null;
  /** The one that runs, else the newest that was neither superseded nor skipped; null if there was none. */
  readonly last: DeploymentJson | null;
  readonly waiting: number;
  readonly paused: PauseJson | null;
  /** What is wrong with its settings, or null. */
  readonly fault: string | null;
  /** Whether it has settings; if not, its pushes are refused and nothing is started. */
  readonly isServed: boolean;
}

export interface LiveJson {
  readonly commit: string;
  readonly subject: string | null;
  readonly author: string | null;
  readonly since: string | null;
}

export const showProjects: WholeRoute = (sources) => jsonReply({ projects: listProjects(sources) });

/** All projects by name, also those whose settings were never good; one that was removed only as long as it is deployed. */
export function listProjects(sources: ControlSources): readonly ProjectJson[] {
  const served = sources.projects
    .list()
    .map((project) => projectJson(contextOf(sources, project)))
    .filter(({ isServed, fault, last }) => isServed || fault !== null || last?.state === "running");
  const names = new Set(served.map(({ name }) => name));
  const broken = [...sources.projects.faults()].filter(([name]) => !names.has(name));
  const without = {
    repoPath: null,
    webUrl: null,
    branches: [],
    live: null,
    last: null,
    waiting: 0,
    paused: null,
    isServed: false,
  };
  const all = [...served, ...broken.map(([name, fault]) => ({ ...without, name, fault }))];
  return all.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function projectJson({ project, store, repoPath, refs, fault, isServed }: ControlContext): ProjectJson {
  const good = findLastGood(store);
  const last =
    findRunning(store) ??
    listDeployments(store, { limit: 100 }).find(({ state }) => state !== "superseded" && state !== "skipped");
  const waiting = store.get(
    "SELECT count(*) AS n FROM deployments WHERE project = $project AND state = 'queued'",
  );
  return {
    ...{ name: project, repoPath, webUrl: webAddress(repoPath), fault, isServed },
    branches: refs.map((ref) => ref.replace("refs/heads/", "")),
    live: good && {
      ...{ commit: liveCommit(good), subject: good.subject, author: good.author },
      since: good.finishedAtMs === null ? null : instant(good.finishedAtMs),
    },
    last: last ? deploymentJson(last) : null,
    waiting: Number(waiting?.n),
    paused: pauseJson(store),
  };
}
