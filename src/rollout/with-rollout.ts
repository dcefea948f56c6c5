import { configHashes, loadModel } from "../platform/compose/ask-compose.ts";
import { listContainers } from "../platform/docker/container.ts";
import { ProblemError } from "../problems.ts";
import { commitOf, timeAsCommit } from "./commit.ts";
import { type RolloutService, readProject } from "./compose/project.ts";
import { refuseOtherHome } from "./compose/refuse-other-home.ts";
import type { Rollout, RolloutContext } from "./context.ts";
import { lockInTurn } from "./lock.ts";
import { liveFilesRead } from "./proxy/caddy.ts";
import { findLiveDirectory } from "./proxy/live-directory.ts";
import { refuseForeignLiveFiles, refuseSharedLiveFile } from "./proxy/refuse-shared-live-files.ts";
import { type Failure, reportFailure, timed } from "./report/report.ts";
import { type RolloutRequest, readVersionChoice } from "./request.ts";
import { findOwnService } from "./self-update/own-service.ts";

/** Holds the project's lock, reads the project, and does `work` with it; reports and throws as `inTurn`. */
export async function withRollout<Ending>(
  request: RolloutRequest,
  work: (rollout: Rollout) => Promise<Ending>,
): Promise<Ending | Failure> {
  return inTurn(request, async (context) => {
    const over = new AbortController();
    try {
      return await work(await open(request, context, over.signal));
    } finally {
      over.abort();
    }
  });
}

/** What is known before the project is read. */
export type LockedContext = Omit<RolloutContext, "project" | "own">;

/**
 * Holds the project's lock during `work`, which gets the good versions of that moment. Reports and returns expected
 * failures; throws faults.
 */
export async function inTurn<Ending>(
  request: RolloutRequest,
  work: (context: LockedContext) => Promise<Ending>,
): Promise<Ending | Failure> {
  try {
    const lock = await lockInTurn(request);
    try {
      return await work(await lockedContext(request, lock.descriptor));
    } finally {
      await lock.release();
    }
  } catch (error) {
    const known = error instanceof ProblemError ? error : wasInterrupted(error, request.signal);
    if (known === null) throw error;
    return reportFailure(request.report, known.problem);
  }
}

async function lockedContext(request: RolloutRequest, lockDescriptor: number): Promise<LockedContext> {
  const { engine, target, env, signal, statePath, versionsPath, report } = request;
  const choice = await readVersionChoice(request);
  const commit = choice.version?.commit ?? (await commitToTag(request));
  return { engine, target, env, signal, statePath, versionsPath, report, lockDescriptor, commit, ...choice };
}

/** Outside of git, the time takes the commit's place, also with twelve digits. */
async function commitToTag({ commit, target, env }: RolloutRequest): Promise<string> {
  return (await commitOf(target.projectDirectory, commit, env)) ?? timeAsCommit(Date.now());
}

function wasInterrupted(error: unknown, signal: AbortSignal): ProblemError | null {
  if (!signal.aborted || !(error instanceof Error && error.name === "AbortError")) return null;
  return new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
}

async function open(request: RolloutRequest, context: LockedContext, over: AbortSignal): Promise<Rollout> {
  const read = () => readRollout(request, context, over);
  const { result } = await timed(context.report, null, "read", read, ({ project, liveDirectory }) =>
    liveDirectory === null
      ? `project ${project.name}, no live directory yet`
      : `project ${project.name}, live files in ${liveDirectory}`,
  );
  return { ...result, services: ownLast(selectServices(result.project, request.services), result) };
}

async function readRollout(
  { lockPath, liveDirectory: named }: RolloutRequest,
  context: LockedContext,
  over: AbortSignal,
): Promise<Omit<Rollout, "services">> {
  const { engine, target, env, signal } = context;
  const model = await loadModel(context);
  const containers = await listContainers(engine, model.name);
  refuseOtherHome(model, { home: env.HOME, projectDirectory: target.projectDirectory }, containers);
  const project = readProject(model);
  refuseSharedLiveFile(project.services);
  const liveDirectory = await findLiveDirectory(engine, model, named);
  const container = await findOwnService(engine);
  const own = container?.project === project.name ? container : null;
  const filesRead = liveDirectory === null ? null : await liveFilesRead(liveDirectory);
  const untilOver = { ...context, signal: AbortSignal.any([signal, over]) };
  const hashes = configHashes(untilOver, model, containers);
  hashes.catch(() => {}); // If something else fails first, nobody awaits the hashes.
  const rollout = {
    ...context,
    project,
    own,
    lockPath,
    liveDirectory,
    liveFilesRead: filesRead,
    configHashes: hashes,
  };
  await refuseForeignLiveFiles(rollout);
  return rollout;
}

/** Hotpush itself is replaced after everything else. */
function ownLast(
  services: readonly RolloutService[],
  { own }: Pick<Rollout, "own">,
): readonly RolloutService[] {
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
