import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { configHashes, loadModel, runCompose, type Scale, scaleUpCommand } from "#platform/compose";
import { findOwnService, listContainers } from "#platform/docker/containers";
import { type CommandEnding, hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import {
  onService,
  type ParallelRollout,
  type Rollout,
  type RolloutContext,
  type RolloutRequest,
  type RunningContainers,
} from "./context.ts";
import { nameImages, prepareImages } from "./images.ts";
import { adoptLiveFiles, findLiveDirectory, refuseForeignLiveFiles } from "./live-directory.ts";
import { lockRollout } from "./lock.ts";
import { oneShotsOf } from "./plan.ts";
import { type RolloutProject, type RolloutService, readProject } from "./project.ts";
import { pruneProject } from "./prune.ts";
import { commitOf, recordFirstVersion, recordVersion, servingImages } from "./record-version.ts";
import { recoverService } from "./recover.ts";
import { refuseOtherHome } from "./refuse-compose-file.ts";
import { note, type ServiceOutcome, timed } from "./report.ts";
import { withRequestsCounted } from "./requests.ts";
import { removeService, rollBackServices, updateService } from "./roll-service.ts";
import { checkThroughProxy, liveFilesRead, patientLimits } from "./switch-traffic.ts";
import { goodVersion, readVersions } from "./versions.ts";

/**
 * Brings the services of a compose project up to date with the compose file and their sources, without dropping a
 * request. If one fails, the old versions serve again, including those of services that were replaced before it.
 *
 * @throws ProblemError for expected failures, such as `rollout_interrupted`, `state_unusable`, `no_previous_version`
 */
export async function rollOut(request: RolloutRequest): Promise<void> {
  await withRollout(request, rollOutServices);
}

async function rollOutServices(rollout: Rollout): Promise<readonly ServiceOutcome[]> {
  const { services, commit, project, report, version } = rollout;
  const names = services.map(({ name }) => name);
  report({ event: "started", project: project.name, commit, services: names });
  await warnAboutOrphans(rollout);
  const running = await recoverAll(rollout);
  await recordFirstVersion(rollout);
  const outcomes: ServiceOutcome[] = [];
  try {
    if (version) await nameImages(rollout, services, version);
    else await prepareImages(rollout, services, () => pruneProject(rollout));
    await updateAll(rollout, running, outcomes);
  } catch (error) {
    await rollBackServices(rollout, running, outcomes, inParallel(rollout, new AbortController().signal));
    throw error;
  }
  // Last, because a failure before would have to undo it; in reverse, because their callers are up to date by now.
  for (const service of services.filter(({ replicas }) => replicas === 0).toReversed())
    outcomes.push(await removeService(onService(rollout, service)));
  await adoptLiveFiles(rollout);
  await checkFirstStarts(rollout, outcomes);
  await recordVersion(rollout, () => servingImages(rollout), ranToTheirEnd(rollout, outcomes));
  // Services end in any order.
  return outcomes.toSorted((one, other) => names.indexOf(one.service) - names.indexOf(other.service));
}

/** Holds the project's lock, reads the project, and does `work` with it while its requests are counted. */
export async function withRollout(
  request: RolloutRequest,
  work: (rollout: Rollout) => Promise<readonly ServiceOutcome[]>,
): Promise<void> {
  await inTurn(request, async (context) => {
    const read = await readRollout(context);
    return withRequestsCounted(read, (requestCount) => work({ ...read, requestCount }));
  });
}

/** What is known before the project is read. */
export type LockedContext = Omit<RolloutContext, "project" | "own">;

/**
 * Holds the project's lock during `work`, and reports its outcomes as the last event. The version to go back to is
 * chosen under the lock: another roll-out may add one until then.
 */
export async function inTurn(
  request: RolloutRequest,
  work: (context: LockedContext) => Promise<readonly ServiceOutcome[]>,
): Promise<void> {
  const { target, env, back, versionsPath, report, signal } = request;
  const { descriptor, release } = await lockRollout(request.lockPath, request.lockWaitS, request);
  try {
    const startedMs = performance.now();
    // Before anything else: if they are damaged, this one could not be recorded either.
    const versions = await readVersions(versionsPath);
    const version = back && goodVersion(versions, back.commit);
    const commit = version?.commit ?? (await commitOf(target.projectDirectory, request.commit, env));
    const current = versions.at(-1) ?? null;
    const services = await work({ ...request, lockDescriptor: descriptor, commit, version, current });
    report({ event: "finished", durationMs: Math.round(performance.now() - startedMs), services });
  } catch (error) {
    const wasAborted = error instanceof Error && error.name === "AbortError" && signal.aborted;
    if (!wasAborted) throw error;
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
  } finally {
    await release();
  }
}

async function readRollout(context: LockedContext): Promise<Omit<Rollout, "requestCount">> {
  const { engine, target, env, names } = context;
  const read = async () => {
    const model = await loadModel(context);
    const containers = await listContainers(engine, model.name);
    refuseOtherHome(model, { home: env.HOME, projectDirectory: target.projectDirectory }, containers);
    const whole = readProject(model);
    const liveDirectory = await findLiveDirectory(engine, model, context);
    const container = await findOwnService(engine);
    const own = container?.project === whole.name ? container.service : null;
    const hashes = configHashes(context, model);
    hashes.catch(() => {}); // If something else fails first, nobody awaits the hashes.
    const rollout = {
      ...context,
      ...{ project: withoutOwn(whole, own), own, liveDirectory, configHashes: hashes },
      liveFilesRead: liveDirectory && (await liveFilesRead(liveDirectory)),
    };
    await refuseForeignLiveFiles(rollout);
    return rollout;
  };
  const { result } = await timed(context, "read", read, ({ project, own, liveDirectory }) => {
    const without = own === null ? "" : `, without ${own}, which runs this`;
    const files = liveDirectory === null ? "no live directory yet" : `live files in ${liveDirectory.path}`;
    return `project ${project.name}${without}, ${files}`;
  });
  return { ...result, services: selectServices(result, names) };
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

/**
 * Warns about containers whose service is no longer in the compose file. They are left alone: another compose file,
 * or a profile, may still have it.
 */
async function warnAboutOrphans({ engine, project, own, report }: Rollout): Promise<void> {
  const known = new Set([...project.services.map(({ name }) => name), own]);
  const orphans = (await listContainers(engine, project.name)).filter(({ service }) => !known.has(service));
  for (const [name, containers] of Map.groupBy(orphans, ({ service }) => service)) {
    const names = containers.map((container) => container.name).join(" ");
    const text = `is not in the compose file, but has containers. If it is gone for good: docker rm --force ${names}`;
    note({ report, service: { name } }, text);
  }
}

async function recoverAll(rollout: Rollout): Promise<RunningContainers> {
  const recovering = rollout.services.map(
    async (service) => [service.name, await recoverService(onService(rollout, service))] as const,
  );
  await Promise.allSettled(recovering); // The lock is not released while one is still at work.
  return new Map(await Promise.all(recovering));
}

/** More services at once would wait for each other on the processor while they start, and slow down what serves. */
const servicesPerCore = 4;
const startTimeoutMs = 120_000;

/**
 * Brings the services up to date: each as soon as those that it depends on are, beside all others. When one fails, the
 * others roll back or, if they had been replaced already, come to their end; then this throws.
 *
 * @param outcomes gets an outcome of each service that does not fail, in the order in which they end
 * @throws ProblemError of the first service that fails
 */
async function updateAll(
  rollout: Rollout,
  running: RunningContainers,
  outcomes: ServiceOutcome[],
): Promise<void> {
  const failing = new AbortController();
  const failures: unknown[] = [];
  const ends = new Map<string, Promise<unknown>>();
  const parallel = inParallel(rollout, failing.signal);

  async function update(service: RolloutService): Promise<void> {
    const { name, dependsOn } = service;
    await Promise.all(dependsOn.flatMap((one) => ends.get(one) ?? []));
    outcomes.push(await updateService({ ...onService(rollout, service), parallel }, running.get(name) ?? []));
  }

  for (const service of rollout.services.filter(({ replicas }) => replicas > 0)) {
    const end = update(service).catch((error: unknown) => {
      failures.push(error);
      failing.abort();
      throw error;
    });
    ends.set(service.name, end);
  }
  await Promise.allSettled(ends.values());
  if (failures.length > 0) throw failures[0];
}

/** @param failed aborted by the caller when a service fails */
function inParallel(rollout: Rollout, failed: AbortSignal): ParallelRollout["parallel"] {
  const { target, signal } = rollout;
  const compose = { ...rollout, signal: AbortSignal.any([signal, failed]) };
  const startContainers = startInSharedRuns((scales) =>
    runCompose(compose, scaleUpCommand(target, scales), { timeoutMs: startTimeoutMs }),
  );
  return { ...createSemaphore(servicesPerCore * availableParallelism()), startContainers, failed };
}

/** Lets works begin in the order in which they came: at most `limit` shared ones at once, and an exclusive one alone. */
export function createSemaphore(limit: number) {
  const waiting: { readonly isExclusive: boolean; readonly begin: () => void }[] = [];
  const held = { works: 0, isExclusive: false };

  function beginNext(): void {
    for (let [next] = waiting; next !== undefined; [next] = waiting) {
      const fits = !next.isExclusive && !held.isExclusive && held.works < limit;
      if (held.works > 0 && !fits) return;
      waiting.shift();
      held.works += 1;
      held.isExclusive = next.isExclusive;
      next.begin();
    }
  }

  async function enter<Result>(isExclusive: boolean, work: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((begin) => {
      waiting.push({ isExclusive, begin });
      beginNext();
    });
    try {
      return await work();
    } finally {
      held.works -= 1;
      held.isExclusive = false;
      beginNext();
    }
  }

  return {
    shared: <Result>(work: () => Promise<Result>) => enter(false, work),
    exclusive: <Result>(work: () => Promise<Result>) => enter(true, work),
  };
}

/** Services that are ready at the same moment differ by less. A run of compose takes ten times as long. */
const gatherMs = 25;

interface Asked extends Scale {
  readonly resolve: (ending: CommandEnding) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Starts the containers of several services with one run of compose, and never has two runs at once: who asks during one
 * shares the next. If a shared run fails, each of its services gets a run of its own, so that only the one that fails is
 * blamed.
 */
export function startInSharedRuns(
  run: (scales: readonly Scale[]) => Promise<CommandEnding>,
): (scale: Scale) => Promise<CommandEnding> {
  let asked: Asked[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    await sleep(gatherMs);
    while (asked.length > 0) {
      const shared = asked;
      asked = [];
      await settle(shared);
    }
    isRunning = false;
  }

  async function settle(shared: readonly Asked[]): Promise<void> {
    try {
      const ending = await run(shared);
      if (hasSucceeded(ending) || shared.length === 1) for (const { resolve } of shared) resolve(ending);
      else for (const one of shared) await settle([one]);
    } catch (error) {
      for (const { reject } of shared) reject(error);
    }
  }

  return (scale) =>
    new Promise((resolve, reject) => {
      asked.push({ ...scale, resolve, reject });
      if (!isRunning) runAll().catch(reject);
    });
}

/**
 * There is no old version to go back to: new containers stay, so that an operator can look at them. The proxy itself may have
 * started just now.
 */
async function checkFirstStarts(rollout: Rollout, outcomes: readonly ServiceOutcome[]): Promise<void> {
  const started = outcomes.filter(({ outcome }) => outcome === "started").map(({ service }) => service);
  for (const service of rollout.services.filter(({ name }) => started.includes(name)))
    await checkThroughProxy({ ...rollout, service }, patientLimits);
}

/** The one-shot services that ran at this commit, in this roll-out or before. */
function ranToTheirEnd(rollout: Rollout, outcomes: readonly ServiceOutcome[]): readonly string[] {
  const ran = outcomes.filter(({ outcome }) => outcome === "ran").map(({ service }) => service);
  return [...new Set([...oneShotsOf(rollout).ranAtCommit, ...ran])];
}
