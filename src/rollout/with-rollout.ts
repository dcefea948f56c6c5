import { configHashes, loadModel } from "../platform/compose/ask-compose.ts";
import { listContainers } from "../platform/docker/container.ts";
import { findOwnService } from "../platform/docker/own-container.ts";
import { ProblemError } from "../problems.ts";
import { commitOf } from "./commit.ts";
import { type RolloutProject, type RolloutService, readProject } from "./compose/project.ts";
import { refuseOtherHome } from "./compose/refuse-other-home.ts";
import type { Rollout, RolloutContext, RolloutRequest } from "./context.ts";
import { lockRollout } from "./lock.ts";
import { liveFilesRead } from "./proxy/caddy.ts";
import { findLiveDirectory } from "./proxy/live-directory.ts";
import { refuseForeignLiveFiles, refuseSharedLiveFile } from "./proxy/refuse-shared-live-files.ts";
import { type ServiceOutcome, timed } from "./report/report.ts";
import { withRequestsCounted } from "./requests/count-requests.ts";
import { goodVersion, readVersions } from "./versions.ts";

/** Holds the project's lock, reads the project, and does `work` with it; reports and throws as `inTurn`. */
export async function withRollout(
  request: RolloutRequest,
  work: (rollout: Rollout) => Promise<readonly ServiceOutcome[]>,
): Promise<void> {
  await inTurn(request, async (context) => {
    const over = new AbortController();
    try {
      const rollout = await open(context, over.signal);
      return await withRequestsCounted(rollout, (requestCount) => work({ ...rollout, requestCount }));
    } finally {
      over.abort();
    }
  });
}

/** What is known before the project is read. */
export type LockedContext = Omit<RolloutContext, "project" | "own">;

/**
 * Holds the project's lock during `work`, and reports its outcomes as the last event. The version to go back to is
 * chosen under the lock: another roll-out may add one until then.
 *
 * @throws ProblemError for expected failures, such as `rollout_interrupted`, `state_unusable`, `no_previous_version`
 */
export async function inTurn(
  request: RolloutRequest,
  work: (context: LockedContext) => Promise<readonly ServiceOutcome[]>,
): Promise<void> {
  const lock = await lockRollout(request.lockPath, request.lockWaitS, request);
  try {
    const startedMs = performance.now();
    const services = await work(await lockedContext(request, lock.descriptor));
    const durationMs = Math.round(performance.now() - startedMs);
    request.report({ event: "finished", durationMs, services });
  } catch (error) {
    const wasAborted = error instanceof Error && error.name === "AbortError" && request.signal.aborted;
    if (!wasAborted) throw error;
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
  } finally {
    await lock.release();
  }
}

/** Reads the versions before anything else: if they are damaged, this one could not be recorded either. */
async function lockedContext(request: RolloutRequest, lockDescriptor: number): Promise<LockedContext> {
  const { target, env, back, versionsPath } = request;
  const versions = await readVersions(versionsPath);
  const version = back && goodVersion(versions, back.commit);
  const commit = version?.commit ?? (await commitOf(target.projectDirectory, request.commit, env));
  return { ...request, lockDescriptor, commit, version, current: versions.at(-1) ?? null };
}

async function open(context: LockedContext, over: AbortSignal): Promise<Omit<Rollout, "requestCount">> {
  const read = () => readRollout(context, over);
  const { result } = await timed(context, "read", read, ({ project, own, liveDirectory }) => {
    const without = own === null ? "" : `, without ${own}, which runs this`;
    const files = liveDirectory === null ? "no live directory yet" : `live files in ${liveDirectory.path}`;
    return `project ${project.name}${without}, ${files}`;
  });
  return { ...result, services: selectServices(result, context.names) };
}

async function readRollout(
  context: LockedContext,
  over: AbortSignal,
): Promise<Omit<Rollout, "services" | "requestCount">> {
  const { engine, target, env, signal } = context;
  const model = await loadModel(context);
  const containers = await listContainers(engine, model.name);
  refuseOtherHome(model, { home: env.HOME, projectDirectory: target.projectDirectory }, containers);
  const whole = readProject(model);
  refuseSharedLiveFile(whole.services);
  const liveDirectory = await findLiveDirectory(engine, model, context);
  const filesRead = liveDirectory === null ? null : await liveFilesRead(liveDirectory);
  const container = await findOwnService(engine);
  const own = container?.project === whole.name ? container.service : null;
  const project = withoutOwn(whole, own);
  const untilOver = { ...context, signal: AbortSignal.any([signal, over]) };
  const hashes = configHashes(untilOver, model, containers);
  hashes.catch(() => {}); // If something else fails first, nobody awaits the hashes.
  const read = { project, own, liveDirectory, liveFilesRead: filesRead, configHashes: hashes };
  await refuseForeignLiveFiles({ ...context, ...read });
  return { ...context, ...read };
}

/** A roll-out would end with the container that it runs in. */
export function withoutOwn<Known extends RolloutProject>(project: Known, own: string | null): Known {
  return { ...project, services: project.services.filter(({ name }) => name !== own) };
}

/**
 * The services to roll out.
 *
 * @throws ProblemError `service_unknown`
 */
export function selectServices<Known extends RolloutService>(
  {
    project: { name, services },
    own,
  }: {
    readonly project: { readonly name: string; readonly services: readonly Known[] };
    readonly own: string | null;
  },
  names: readonly string[],
): readonly Known[] {
  const known = services.map((service) => service.name);
  const unknown = names.filter((one) => !known.includes(one));
  if (unknown.length === 0) return services.filter((one) => names.length === 0 || names.includes(one.name));
  const detail = unknown.some((one) => one === own)
    ? `${own} runs this roll-out, which would end with its container. To replace it, run on the server, in the project's directory: docker compose up --detach ${own}. Nothing was changed.`
    : `There is no service ${unknown.join(", ")} in the project ${name}. It has: ${known.join(", ")}.`;
  throw new ProblemError({ code: "service_unknown", detail });
}
