import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ComposeRun, runCompose } from "#platform/compose";
import {
  type Container,
  findOwnContainer,
  inspectContainer,
  removeContainer,
} from "#platform/docker/containers";
import { type Engine, getJson } from "#platform/docker/engine";
import { evidenceOf, isServing } from "#platform/docker/health";
import { inspectImage, isNamedByCommit, namesRegistry, tagByCommit, tagImage } from "#platform/docker/images";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { type ProblemCode, ProblemError } from "#problems";
import type { RolloutRequest } from "../context.ts";
import { prepareImages } from "../images.ts";
import { keptByDefault, type Pruned, type PruneRequest, prune } from "../prune.ts";
import { firstVersionName, recordVersion, writeFirstVersion } from "../record-version.ts";
import { note, outcomeOf, type Report, type ServiceOutcome, timed, unchangedOutcome } from "../report.ts";
import { inTurn, type LockedContext, selectServices, withoutOwn } from "../rollout.ts";
import { checkThroughProxy } from "../switch-traffic.ts";
import { imageIsGone, keptVersions, readVersions, type VersionImage } from "../versions.ts";
import { loadStack, type Stack, type StackRollout, type StackService } from "./stack.ts";
import {
  freshTasks,
  hasFailed,
  isUnderWay,
  judgeService,
  listOfStack,
  type Observation,
  observe,
  readStackState,
  type StackState,
  type SwarmService,
  type Task,
} from "./swarm-service.ts";

const deployTimeoutMs = 5 * 60_000;
const pushTimeoutMs = 30 * 60_000;
const pollMs = 200;

/** The image of each service, by its name in the stack file. */
export type StackImages = ReadonlyMap<string, string>;

/**
 * Brings a stack to the state in its file and its sources: lock, build and name by commit, push, `docker stack deploy`,
 * then wait until Swarm has updated everything. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(request: RolloutRequest): Promise<void> {
  await inTurn(request, async (context) => {
    const nodes = await requireManager(context.engine);
    const rollout = await openStack(context);
    const { engine, project, commit, report } = rollout;
    const services = selectServices(rollout, rollout.names);
    report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
    warn(rollout, services, nodes);
    await recoverStack(rollout);
    const before = await readStackState(engine, project.name);
    await recordFirstStackVersion(rollout, before);
    const images = await prepareStackImages(rollout, services, before);
    const outcomes = await deployAndWait(rollout, images, before);
    await recordVersion(rollout, async () => imagesOf(rollout, await readStackState(engine, project.name)));
    await moveFileNames(rollout, services, images);
    return outcomes;
  });
}

interface SwarmInfo {
  readonly LocalNodeState?: string;
  readonly ControlAvailable?: boolean;
  readonly Nodes?: number;
}

/** @returns how many nodes the Swarm has @throws ProblemError `swarm_inactive` if the engine manages none */
async function requireManager(engine: Engine): Promise<number> {
  const { Swarm } = await getJson<{ readonly Swarm?: SwarmInfo }>(engine, "/info");
  const isActive = Swarm?.LocalNodeState === "active";
  if (isActive && Swarm.ControlAvailable) return Swarm.Nodes ?? 1;
  const what = isActive ? "is a worker of its Swarm, no manager" : "is in no Swarm";
  const advice = "Run docker swarm init there, or deploy on a manager. Nothing was changed.";
  const detail = `The project is a stack, but the Docker engine ${what}. ${advice}`;
  throw new ProblemError({ code: "swarm_inactive", detail });
}

async function openStack(context: LockedContext): Promise<StackRollout> {
  const read = () => loadStack(context, context.commit);
  const { result } = await timed(context, "read", read, ({ project }) => `stack ${project.name}`);
  const { name } = result.project;
  const labels = (await findOwnContainer(context.engine))?.labels ?? {};
  const task = labels["com.docker.stack.namespace"] === name && labels["com.docker.swarm.service.name"];
  const own = task ? task.slice(name.length + 1) : null;
  return { ...context, ...result, own, project: withoutOwn(result.project, own) };
}

function warn({ report, project }: StackRollout, services: readonly StackService[], nodes: number): void {
  for (const service of project.services) {
    const { update, isBuilt, image } = service;
    for (const text of update.warnings) note({ report, service }, text);
    if (nodes > 1 && isBuilt && !namesRegistry(image))
      note(
        { report, service },
        `the image ${image} names no registry, so that only this one of ${nodes} nodes has it`,
      );
  }
  if (services.length === project.services.length) return;
  const text = "the services that were not named keep their images";
  note({ report }, `${text}; other changes to them in the file are deployed`);
}

/** Else Swarm would roll back to the unverified version of an earlier, killed roll-out if the new one fails. */
async function recoverStack(rollout: StackRollout): Promise<void> {
  const present = await readStackState(rollout.engine, rollout.project.name);
  for (const service of rollout.project.services) {
    if (!isUnderWay(present.get(service.name)?.update)) continue;
    const finish = async () => {
      const ended = await waitForUpdate(rollout, service);
      if (ended?.update?.state !== "updating") return ended;
      await rollBackService(rollout.engine, ended);
      return waitForUpdate(rollout, service);
    };
    await timed(
      { ...rollout, service },
      "recover",
      finish,
      (ended) => `an update of an earlier roll-out: ${ended?.update?.state ?? "gone"}`,
    );
  }
}

/** Waits until Swarm has finished the update or the roll back of a service, but no longer than that may take. */
async function waitForUpdate({ engine, project, signal }: StackRollout, { name, update }: StackService) {
  const deadlineMs = performance.now() + update.timeoutMs;
  for (;;) {
    const now = (await readStackState(engine, project.name)).get(name);
    if (!isUnderWay(now?.update) || performance.now() > deadlineMs) return now;
    await sleep(pollMs, undefined, { signal });
  }
}

/** Asks Swarm to roll a service back to its previous specification. */
export async function rollBackService(engine: Engine, { id, version, spec }: SwarmService): Promise<void> {
  await engine.post(`/services/${id}/update?version=${version}&rollback=previous`, spec);
}

/**
 * Records what Swarm runs when Hotpush sees the stack for the first time and all of it is well. An image that is built here
 * gets a name by its commit, and is pushed if that contains a registry.
 *
 * @throws ProblemError `state_unusable` or `image_push_failed`; nothing was deployed yet
 */
async function recordFirstStackVersion(rollout: StackRollout, before: StackState): Promise<void> {
  const { engine, project, current } = rollout;
  const built = project.services.filter(({ isBuilt }) => isBuilt);
  const present = project.services.flatMap((service) => {
    const now = before.get(service.name);
    const mayReturn = service.isBuilt || service.replacement.how !== "recreate";
    return now && mayReturn && !now.isJob && !service.mayEnd ? [now] : [];
  });
  const isWell = present.every((now) => now.runningTasks >= Math.max(1, now.desiredTasks));
  if (current !== null || present.length === 0 || !isWell) return;
  const here = await containersHere(engine, project.name);
  const commit = await firstVersionName(rollout, [...here.values()].flat().filter(isServing));
  const images = { ...(await imagesOf(rollout, before)) };
  for (const { name, image } of built) {
    if (images[name] === undefined || isNamedByCommit(images[name].tag)) continue;
    const [container] = here.get(name) ?? [];
    if (container === undefined) return;
    const tag = await tagByCommit(engine, image, container.image, commit);
    images[name] = { image, id: container.image, tag };
  }
  await pushImages(
    rollout,
    built.flatMap(({ name }) => images[name]?.tag ?? []),
  );
  await writeFirstVersion(rollout, { commit, images });
}

/** The images that the services run, by service. */
async function imagesOf({ engine, project }: StackRollout, state: StackState) {
  const images: Record<string, VersionImage> = {};
  for (const { name, image: tag } of state.values()) {
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    images[name] = { image, ...(await namedImage(engine, tag)) };
  }
  return images;
}

/** If the image is only on another node, its name identifies it, because that never stands for another image. */
async function namedImage(engine: Engine, tag: string): Promise<Pick<VersionImage, "id" | "tag">> {
  return { id: (await inspectImage(engine, tag))?.id ?? tag, tag };
}

/** The running containers of the stack's tasks on this node, by service. */
async function containersHere(engine: Engine, stack: string) {
  const listed = await listOfStack<{ readonly Id: string }>(engine, stack, "/containers/json?");
  const containers = await Promise.all(listed.map(({ Id }) => inspectContainer(engine, Id)));
  return Map.groupBy(
    containers.filter((container): container is Container => container !== null),
    ({ labels }) => (labels["com.docker.swarm.service.name"] ?? "").slice(stack.length + 1),
  );
}

/**
 * Builds, names and pushes the images of the requested services. Nothing is deployed yet: if this fails, everything
 * serves as before.
 *
 * @returns the image to deploy for each service
 */
async function prepareStackImages(
  rollout: StackRollout,
  services: readonly StackService[],
  before: StackState,
): Promise<StackImages> {
  const { engine, project, version } = rollout;
  // Read before the build, which may take a name from a running image.
  const live = await readLiveImages(rollout, before);
  if (version) return chooseImages(rollout, services, live);
  const running = await containersHere(engine, project.name);
  // Each node pulls by itself what is not built here.
  const built = services.filter(({ isBuilt }) => isBuilt);
  try {
    await prepareImages({ ...rollout, withPull: false }, built, running, () => pruneStack(project, rollout));
    const images = await chooseImages(rollout, services, live);
    const fresh = built.flatMap(({ name }) => images.get(name) ?? []);
    const known = [...live.values()].map(({ name }) => name);
    await pushImages(
      rollout,
      fresh.filter((image) => !known.includes(image)),
    );
    return images;
  } finally {
    // The names in the file are the running images' until the new version is verified, also after a failure: if Swarm starts a
    // task by such a name, it must not get a version that may be broken. A name by commit is never moved.
    for (const { name, image } of built) {
      const id = live.get(name)?.id;
      if (id && !isNamedByCommit(image)) await tagImage(engine, id, image);
    }
  }
}

/** The image of a service before the roll-out: its name in the specification, and its id if it is on this node. */
interface LiveImage {
  readonly name: string;
  readonly id: string | null;
  readonly isJob: boolean;
}

export async function readLiveImages(
  { engine }: Pick<StackRollout, "engine">,
  before: StackState,
): Promise<ReadonlyMap<string, LiveImage>> {
  const live = [...before.values()].map(async ({ name, image, isJob }) => {
    const id = (await inspectImage(engine, image))?.id ?? null;
    return [name, { name: image, id, isJob }] as const;
  });
  return new Map(await Promise.all(live));
}

/**
 * Chooses for each service an image name that never stands for another image: the name by commit of the built image, or
 * the name that already runs if the build gave the same image, so that Swarm leaves the service alone. Services without a
 * name here are deployed as in the stack file.
 *
 * @param services the requested ones; the others keep their images
 */
export async function chooseImages(
  rollout: StackRollout,
  services: readonly StackService[],
  live: ReadonlyMap<string, LiveImage>,
): Promise<StackImages> {
  const chosen = new Map<string, string>();
  for (const service of rollout.project.services) {
    const running = live.get(service.name);
    const name = services.includes(service) ? await chooseImage(rollout, service, running) : running?.name;
    if (name !== undefined) chosen.set(service.name, name);
  }
  return chosen;
}

async function chooseImage(
  rollout: StackRollout,
  service: StackService,
  running: LiveImage | undefined,
): Promise<string | undefined> {
  const { engine, report, version, commit } = rollout;
  const { name, image, isBuilt, replacement } = service;
  if (version !== null) {
    // Swarm would run a job again.
    if (running?.isJob) {
      note({ report, service }, "is not run in a roll back: what it changed stays as it is");
      return running.name;
    }
    const good = version.images[name];
    // The data of a database may not go back.
    if (!good || (!isBuilt && replacement.how === "recreate")) return undefined;
    if (namesRegistry(good.tag) || !isBuilt || (await inspectImage(engine, good.tag)) !== null)
      return good.tag;
    throw imageIsGone(name, good, version);
  }
  const id = isBuilt ? (await inspectImage(engine, image))?.id : undefined;
  if (id === undefined) return undefined; // The nodes pull it.
  if (running?.id === id) return running.name;
  const tag = await tagByCommit(engine, image, id, commit);
  // If the stack file names images by commit itself, this commit may have given another image than before.
  return tag === running?.name ? tagByCommit(engine, image, id, id.replace("sha256:", "")) : tag;
}

/** Pushes those `references` that contain a registry, so that every node can pull them. */
async function pushImages(rollout: StackRollout, references: readonly string[]): Promise<void> {
  for (const reference of new Set(references.filter(namesRegistry))) {
    const failed = `The image ${reference} could not be pushed. Is the registry up, and was docker login run for this user?`;
    const push = () =>
      run(rollout, ["docker", "push", reference], "image_push_failed", failed, { timeoutMs: pushTimeoutMs });
    await timed(rollout, "push", push, reference);
  }
}

/** Runs `argv` and gives its output. @throws ProblemError `code` with Docker's message */
async function run(
  rollout: StackRollout,
  argv: Argv,
  code: ProblemCode,
  detail: string,
  options: Partial<ComposeRun>,
): Promise<string> {
  const ending = await runCompose(rollout, argv, { timeoutMs: deployTimeoutMs, ...options });
  if (hasSucceeded(ending)) return ending.output;
  throw new ProblemError({ code, detail, evidence: ending.lastLines });
}

/** Deploys all services and waits for the result. If one fails, all changed services are rolled back. */
async function deployAndWait(
  rollout: StackRollout,
  images: StackImages,
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  try {
    await deployStack(rollout, images);
    const wait = () => waitForServices(rollout, before);
    const { result: outcomes } = await timed(rollout, "update", wait, "Swarm is done");
    const unchanged = outcomes.filter(({ outcome }) => outcome === "unchanged").map(({ service }) => service);
    for (const service of rollout.project.services)
      if (!unchanged.includes(service.name)) await checkThroughProxy({ ...rollout, service });
    return outcomes;
  } catch (error) {
    await rollBackStack(rollout, before);
    throw error;
  }
}

/**
 * Deploys the stack, but for the service that runs this. Swarm then works on by itself.
 *
 * @throws ProblemError `stack_refused` with Docker's message
 */
async function deployStack(rollout: StackRollout, images: StackImages): Promise<void> {
  const { project, own, target } = rollout;
  const files = [...target.files, "-"];
  const docker = (argv: Argv, options: Partial<ComposeRun>) =>
    run(rollout, argv, "stack_refused", `${argv.slice(0, 3).join(" ")} failed.`, options);
  const deploy = async () => {
    const input = deployInput(project.services, images);
    if (own === null) return docker(deployCommand(rollout, files, images), { input });
    // `docker stack deploy` leaves services alone that are not in its file.
    const file = await docker(["docker", "stack", "config", ...fileFlags(files)], { input });
    const names = project.services.map(({ name }) => name);
    // Variables are filled in already: what still looks like one is text.
    const others = (await onlyServices(file, names)).replaceAll("$", () => "$$");
    // Docker resolves the relative paths in a file on standard input from the working directory.
    const directory = dirname(target.files[0] ?? ".");
    return docker(deployCommand(rollout, ["-"], images), { input: others, directory });
  };
  const without = own === null ? "" : `, without ${own}, which runs this`;
  await timed(rollout, "deploy", deploy, () => `stack ${project.name}${without}`);
}

/** What a roll-out adds to the stack file: images by their names with the commit, and an update that starts the new task first. */
export function deployInput(services: readonly StackService[], images: StackImages): string {
  const added = services.map(({ name, update }) => {
    const deploy = Object.keys(update.added).length === 0 ? undefined : update.added;
    return [name, { image: images.get(name), deploy }];
  });
  return JSON.stringify({ services: Object.fromEntries(added) });
}

/** `docker stack deploy` of `files`; "-" is standard input. */
export function deployCommand(
  { project, withPull }: Pick<StackRollout, "project" | "withPull">,
  files: readonly string[],
  images: StackImages,
): Argv {
  // Asking the registry for every image would also update those that this commit did not change.
  const changed = [...images.values()].some(namesRegistry) ? "changed" : "never";
  const resolve = `--resolve-image=${withPull ? "always" : changed}`;
  const options = ["--detach=true", "--with-registry-auth", resolve];
  return ["docker", "stack", "deploy", ...fileFlags(files), ...options, project.name];
}

function fileFlags(files: readonly string[]): readonly string[] {
  return files.flatMap((file) => ["--compose-file", file]);
}

/** The part of a stack file (the output of `docker stack config`) with the services `names` and all that is no service. */
export async function onlyServices(file: string, names: readonly string[]): Promise<string> {
  // Few roll-outs need the package, so the others do not wait until it is loaded.
  const { isMap, parseDocument } = await import("yaml");
  // Every value stays as it is written: Docker reads YAML 1.1, in which 010 is 8 and `on` is true.
  const document = parseDocument(file, { schema: "failsafe" });
  const services = document.get("services");
  if (isMap(services)) services.items = services.items.filter(({ key }) => names.includes(String(key)));
  return document.toString({ lineWidth: 0 });
}

/**
 * Waits until Swarm has brought each service to its new state, and reports the progress of each task.
 *
 * @param before the stack just before the deploy
 * @throws ProblemError `container_not_healthy` at the first service that Swarm rolled back, paused or did not update in time
 */
async function waitForServices(
  { engine, project, report, signal }: StackRollout,
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  const startedMs = performance.now();
  const reportTasks = createTaskReport(report, before);
  const seen = new Map<string, Observation>();
  const reached = new Map<string, ServiceOutcome>();
  for (;;) {
    const state = await readStackState(engine, project.name);
    const atMs = performance.now() - startedMs;
    for (const service of project.services) {
      const { name } = service;
      const now = state.get(name);
      const gone = {
        code: "container_not_healthy",
        detail: `The service ${name} was removed meanwhile.`,
      } as const;
      if (now === undefined) throw new ProblemError(gone);
      reportTasks(now);
      const observation = observe({ before: before.get(name) ?? null, now, atMs }, seen.get(name));
      seen.set(name, observation);
      const judgement = reached.has(name) ? "pending" : judgeService(service, observation);
      if (typeof judgement === "object") throw await updateFailure(engine, judgement.failure, observation);
      if (judgement !== "pending") reached.set(name, outcomeFor(service, judgement, observation));
    }
    if (reached.size === project.services.length) return [...reached.values()];
    await sleep(pollMs, undefined, { signal });
  }
}

/** The other states pass within milliseconds, unless there is an error to report. */
const reportedStates = /^(?:preparing|starting|running|shutdown|complete|failed|rejected)$/;

/** Makes a function that reports each change of a service's tasks once, compared with those in `before`. */
export function createTaskReport(report: Report, before: StackState) {
  const stateOf = ({ state, error }: Task) => (error === "" ? state : `${state}: ${error}`);
  const known = [...before.values()].flatMap(({ tasks }) => tasks);
  const reported = new Map(known.map((task) => [task.id, stateOf(task)]));
  return ({ name, tasks }: Pick<SwarmService, "name" | "tasks">): void => {
    for (const task of tasks) {
      const text = stateOf(task);
      if (reported.get(task.id) === text || !(reportedStates.test(task.state) || task.error)) continue;
      reported.set(task.id, text);
      report({ event: "note", service: name, text: `${task.name} ${text}` });
    }
  };
}

function outcomeFor(
  service: StackService,
  judgement: "unchanged" | "started" | "updated",
  { before, now, healthyAfterMs, downtimeMs }: Observation,
): ServiceOutcome {
  const running = (tasks: readonly Task[] = []) =>
    tasks
      .filter(({ state, isWanted }) => state === "running" && isWanted)
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  if (judgement === "unchanged") return unchangedOutcome(service, running(now.tasks));
  const { replacement, update } = service;
  const wasServing = before !== null && before.runningTasks > 0;
  const isRolled = update.order === "start-first";
  const single = replacement.how === "recreate" ? replacement.reason : "order: stop-first";
  const looked = downtimeMs === 0 ? "a task ran at each look" : "no task ran";
  return outcomeOf(
    service,
    judgement === "started" ? "started" : isRolled ? "rolled" : "recreated",
    { old: running(before?.tasks), new: running(freshTasks({ before, now })) },
    {
      healthyAfterMs: healthyAfterMs === null ? null : Math.round(healthyAfterMs),
      downtimeMs: wasServing ? Math.round(downtimeMs) : null,
      // Tasks are observed, requests are not.
      reason: isRolled ? (wasServing ? looked : null) : single,
    },
  );
}

/** The error of a service that failed, with the failing task's error, health output and last log lines. */
export async function updateFailure(
  engine: Engine,
  failure: string,
  seen: Pick<Observation, "before" | "now">,
): Promise<ProblemError> {
  const code = "container_not_healthy";
  const fresh = freshTasks(seen);
  const isWaiting = ({ state, isWanted }: Task) => isWanted && state !== "running";
  const task = fresh.findLast(hasFailed) ?? fresh.findLast(isWaiting);
  if (task === undefined) return new ProblemError({ code, detail: failure });
  const { id, name, state, containerId, environment } = task;
  // Swarm has no error for a container that was stopped as unhealthy and then exited with 0.
  const error = task.error || (state === "complete" ? "it ended, or was stopped as unhealthy" : "");
  const detail = `${failure} Task ${name} ${hasFailed(task) ? "failed" : `is ${state}`}${error && `: ${error}`}.`;
  if (containerId === null) return new ProblemError({ code, detail });
  // The container can only be inspected on its own node; its logs come from any.
  const container = await inspectContainer(engine, containerId);
  const known = container ?? { environment, mounts: [], healthLog: [] };
  const evidence = await evidenceOf(engine, known, [`/containers/${containerId}`, `/tasks/${id}`]);
  return new ProblemError({ code, detail, evidence });
}

/**
 * Gives the image names in the stack file to the new version, which is good, for those who deploy the stack by hand. The
 * new version already serves, so a registry that is down is only noted.
 */
async function moveFileNames(
  rollout: StackRollout,
  services: readonly StackService[],
  images: StackImages,
): Promise<void> {
  const { engine } = rollout;
  const moved: string[] = [];
  for (const { name, image, isBuilt } of services) {
    const next = isBuilt ? await inspectImage(engine, images.get(name) ?? image) : null;
    if (next === null || next.id === (await inspectImage(engine, image))?.id) continue;
    await tagImage(engine, next.id, image);
    moved.push(image);
  }
  const noteFault = (error: unknown) => note(rollout, `the new version serves, but: ${messageOf(error)}`);
  await pushImages(rollout, moved).catch(noteFault);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Rolls back everything that this roll-out has changed when one service fails, so that the running versions belong
 * together. Swarm itself rolls back the failed service, if its policy says so. Services that cannot run twice stay: the
 * data of a database may not go back. So do jobs, which Swarm would run again, and new services, for inspection.
 */
export async function rollBackStack(rollout: StackRollout, before: StackState): Promise<void> {
  const { engine, project, signal } = rollout;
  for (const service of project.services.filter(({ replacement }) => replacement.how !== "recreate")) {
    const old = before.get(service.name);
    const back = async (now: SwarmService) => {
      await rollBackService(engine, now);
      // After a request to stop there is no time to watch: Swarm goes on by itself.
      if (signal.aborted) return "asked for";
      const state = (await waitForUpdate(rollout, service))?.update?.state;
      if (state === "rollback_completed") return "done";
      return state === "rollback_paused" ? "paused by Swarm" : "not done in time; Swarm goes on";
    };
    try {
      const now = (await readStackState(engine, project.name)).get(service.name);
      if (!old || !now || now.isJob || now.definition === old.definition) continue;
      const on = { ...rollout, service };
      await timed(
        on,
        "roll back",
        () => back(now),
        (how) => `to the old version: ${how}`,
      );
    } catch (error) {
      const advice = `Run: docker service rollback ${project.name}_${service.name}`;
      note({ ...rollout, service }, `could not be rolled back: ${messageOf(error)} ${advice}`);
    }
  }
}

/**
 * Removes what roll-outs of this stack left on this node. Swarm keeps the containers of ended tasks, which would keep
 * their images: those containers whose image is not needed are removed first.
 */
export async function pruneStack(
  stack: Stack,
  request: Omit<PruneRequest, "project" | "inUse">,
): Promise<Pruned> {
  const { engine, versionsPath, keep = keptByDefault } = request;
  // Swarm may start a task from the present and the previous specification by itself.
  const services = [...(await readStackState(engine, stack.name)).values()];
  const names = new Set(services.flatMap(({ image, previousImage }) => [image, previousImage ?? image]));
  const inUse = await Promise.all([...names].map((tag) => namedImage(engine, tag)));
  const kept = keptVersions(await readVersions(versionsPath), keep);
  const needed = new Set(
    [...inUse, ...kept.flatMap(({ images }) => Object.values(images))].map(({ id }) => id),
  );
  const status = ["created", "exited", "dead"];
  const path = "/containers/json?all=1&";
  type Ended = { readonly Id: string; readonly ImageID: string };
  for (const { Id, ImageID } of await listOfStack<Ended>(engine, stack.name, path, { status }))
    if (!needed.has(ImageID)) await removeContainer(engine, Id);
  return prune({
    ...request,
    project: { name: stack.name, images: stack.services.map(({ image }) => image) },
    inUse,
  });
}
