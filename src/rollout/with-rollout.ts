import { configHashes, loadModel } from "../platform/compose/ask-compose.ts";
import { listContainers } from "../platform/docker/container.ts";
import { ProblemError } from "../problems.ts";
import { commitOf, timeAsCommit } from "./commit.ts";
import { type RolloutService, readProject } from "./compose/project.ts";
import { refuseOtherHome } from "./compose/refuse-other-home.ts";
import type { Rollout } from "./context.ts";
import { lockInTurn } from "./lock.ts";
import { liveFilesRead } from "./proxy/caddy.ts";
import { findLiveDirectory } from "./proxy/live-directory.ts";
import { refuseForeignLiveFiles, refuseSharedLiveFile } from "./proxy/refuse-shared-live-files.ts";
import { type Failure, reportFailure, timed } from "./report/report.ts";
import { type LockedRequest, lockedRequest, type RolloutRequest } from "./request.ts";
import { findOwnService } from "./self-update/own-service.ts";

/** A roll-out that holds the project's lock. */
export interface Taken {
  readonly rollout: Rollout;
  readonly request: LockedRequest;
  readonly services: readonly RolloutService[];
  /** Images are named after it. */
  readonly commit: string;
}

/**
 * Holds the project's lock, reads the project, and does `work` with it. Reports and returns expected failures; throws
 * faults.
 */
export async function withRollout<Ending>(
  request: RolloutRequest,
  work: (taken: Taken) => Promise<Ending>,
): Promise<Ending | Failure> {
  return inTurn(request, async (locked, lockDescriptor) => {
    const over = new AbortController();
    try {
      const rollout = await open(locked, lockDescriptor, over.signal);
      const services = ownLast(selectServices(rollout.project, locked.services), rollout);
      return await work({ rollout, request: locked, services, commit: await commitToTag(locked) });
    } finally {
      over.abort();
    }
  });
}

/**
 * Holds the project's lock during `work`, which gets the request with the good versions of that moment. An expected
 * failure is reported and returned; faults are thrown.
 */
export async function inTurn<Ending>(
  asked: RolloutRequest,
  work: (request: LockedRequest, lockDescriptor: number) => Promise<Ending>,
): Promise<Ending | Failure> {
  try {
    const lock = await lockInTurn(asked);
    try {
      return await work(await lockedRequest(asked), lock.descriptor);
    } finally {
      await lock.release();
    }
  } catch (error) {
    const known = error instanceof ProblemError ? error : wasInterrupted(error, asked.signal);
    if (known === null) throw error;
    return reportFailure(asked.report, known.problem);
  }
}

function wasInterrupted(error: unknown, signal: AbortSignal): ProblemError | null {
  if (!signal.aborted || !(error instanceof Error && error.name === "AbortError")) return null;
  return new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
}

async function open(request: RolloutRequest, lockDescriptor: number, over: AbortSignal): Promise<Rollout> {
  const { engine, target, env, report, signal } = request;
  const read = async () => {
    const surroundings = { env, signal, lockDescriptor, target };
    const model = await loadModel(surroundings);
    const containers = await listContainers(engine, model.name);
    refuseOtherHome(model, { home: env.HOME, projectDirectory: target.projectDirectory }, containers);
    const project = readProject(model);
    refuseSharedLiveFile(project.services);
    const liveDirectory = await findLiveDirectory(engine, model, request.liveDirectory);
    const container = await findOwnService(engine);
    const own = container?.project === project.name ? container : null;
    const read = liveDirectory === null ? null : await liveFilesRead(liveDirectory);
    const untilOver = { ...surroundings, signal: AbortSignal.any([signal, over]) };
    const hashes = configHashes(untilOver, model, containers);
    hashes.catch(() => {}); // If something else fails first, nobody awaits the hashes.
    const rollout = {
      engine,
      target,
      env,
      project,
      configHashes: hashes,
      liveDirectory,
      liveFilesRead: read,
      own,
      statePath: request.statePath,
      lockPath: request.lockPath,
      report,
      lockDescriptor,
      signal,
    };
    await refuseForeignLiveFiles(rollout);
    return rollout;
  };
  const { result } = await timed(report, null, "read", read, ({ project, liveDirectory }) =>
    liveDirectory === null
      ? `project ${project.name}, no live directory yet`
      : `project ${project.name}, live files in ${liveDirectory}`,
  );
  return result;
}

/** Hotpush itself is replaced after everything else. */
function ownLast(services: readonly RolloutService[], { own }: Rollout): readonly RolloutService[] {
  const isOwn = ({ name }: RolloutService) => name === own?.service;
  return [...services.filter((service) => !isOwn(service)), ...services.filter(isOwn)];
}

export function selectServices<Known extends RolloutService>(
  project: { readonly name: string; readonly services: readonly Known[] },
  names: readonly string[],
): readonly Known[] {
  const known = project.services.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new ProblemError({
      code: "service_unknown",
      detail: `There is no service ${unknown.join(", ")} in the project ${project.name}. It has: ${known.join(", ")}.`,
    });
  }
  return project.services.filter(({ name }) => names.length === 0 || names.includes(name));
}

/** Outside of git, the time takes the commit's place, also with twelve digits. */
export async function commitToTag({ commit, version, target, env }: LockedRequest): Promise<string> {
  if (version) return version.commit;
  return (await commitOf(target.projectDirectory, commit, env)) ?? timeAsCommit(Date.now());
}
