import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/duration";
import { type ComposeRun, runCompose } from "#platform/compose";
import { findOwnContainer, inspectContainer, removeContainer } from "#platform/docker/containers";
import { type Engine, filteredBy, getJson } from "#platform/docker/engine";
import { evidenceOf } from "#platform/docker/health";
import { inspectImage, isNamedByCommit, namesRegistry, tagByCommit, tagImage } from "#platform/docker/images";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { type ProblemCode, ProblemError } from "#problems";
import type { LockedContext } from "./context.ts";
import { prepareImages } from "./images.ts";
import { mayGoBack } from "./plan.ts";
import { keptByDefault, type Pruned, type PruneRequest, prune, pruneBeside } from "./prune.ts";
import { recordVersion, timeAsCommit, writeFirstVersion } from "./record-version.ts";
import { note, outcomeOf, type Report, type ServiceOutcome, timed, unchangedOutcome } from "./report.ts";
import { selectServices, withoutOwn } from "./rollout.ts";
import { loadStack, type Stack, type StackRollout, type StackService } from "./stack.ts";
import { checkThroughProxy } from "./switch-traffic.ts";
import { imageIsGone, keptVersions, readVersions, type VersionImage } from "./versions.ts";

const deployTimeoutMs = 5 * 60_000;
const pushTimeoutMs = 30 * 60_000;
const pollMs = 200;

/** The image of each service, by its name in the stack file. */
type StackImages = ReadonlyMap<string, string>;

/**
 * Brings a stack to the state in its file and its sources: build and name by commit, push, `docker stack deploy`, then wait until
 * Swarm has updated everything. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(context: LockedContext): Promise<readonly ServiceOutcome[]> {
  const nodes = await requireManager(context.engine);
  const rollout = await openStack(context);
  const { engine, project, commit, report } = rollout;
  const services = selectServices(rollout, rollout.names);
  report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
  warnAboutImages(rollout, nodes);
  await recoverStack(rollout);
  const before = await readStackState(engine, project.name);
  await recordFirstStackVersion(rollout, before);
  // Read before the build, which may take a name from a running image.
  const live = await readLiveImages(rollout, before);
  const outcomes: ServiceOutcome[] = [];
  try {
    const images = await prepareStackImages(rollout, services, live);
    await deployStack(rollout, images);
    const wait = () => waitForServices(rollout, before);
    outcomes.push(...(await timed(rollout, "update", wait, "Swarm is done")).result);
    const changed = outcomes.filter(({ outcome }) => outcome !== "unchanged").map(({ service }) => service);
    for (const service of project.services)
      if (changed.includes(service.name)) await checkThroughProxy({ ...rollout, service });
  } catch (error) {
    await rollBackStack(rollout, before, live);
    throw error;
  }
  await recordVersion(rollout, async () => imagesOf(rollout, await readStackState(engine, project.name)));
  if (rollout.withPrune) await pruneBeside(rollout, () => pruneStack(project, rollout));
  return outcomes;
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

function warnAboutImages({ report, project }: StackRollout, nodes: number): void {
  for (const service of project.services)
    if (nodes > 1 && service.isBuilt && !namesRegistry(service.image)) {
      const text = `the image ${service.image} names no registry, so that only this one of ${nodes} nodes has it`;
      note({ report, service }, text);
    }
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
async function waitForUpdate({ engine, project, signal }: StackRollout, service: StackService) {
  const deadlineMs = performance.now() + service.updateTimeoutMs;
  for (;;) {
    const now = (await readStackState(engine, project.name)).get(service.name);
    if (!isUnderWay(now?.update) || performance.now() > deadlineMs) return now;
    await sleep(pollMs, undefined, { signal });
  }
}

/** Asks Swarm to roll a service back to its previous specification. */
async function rollBackService(engine: Engine, { id, version, spec }: SwarmService): Promise<void> {
  await engine.post(`/services/${id}/update?version=${version}&rollback=previous`, spec);
}

/**
 * Records what Swarm runs when Hotpush sees the stack for the first time, all of it is well, and the images that are built here
 * are on this node. These get a name that no build takes.
 *
 * @throws ProblemError `state_unusable` or `image_push_failed`; nothing was deployed yet
 */
async function recordFirstStackVersion(rollout: StackRollout, before: StackState): Promise<void> {
  const { engine, project, current } = rollout;
  const present = project.services.filter(mayGoBack).flatMap((service) => {
    const now = before.get(service.name);
    return now && !now.isJob && !service.mayEnd ? [{ service, now }] : [];
  });
  const isWell = present.every(({ now }) => now.runningTasks >= Math.max(1, now.desiredTasks));
  if (current !== null || present.length === 0 || !isWell) return;
  const commit = timeAsCommit(Date.now());
  const images = await imagesOf(rollout, before);
  for (const { service, now } of present.filter(({ service }) => service.isBuilt)) {
    if (isNamedByCommit(now.image)) continue;
    const id = (await inspectImage(engine, now.image))?.id;
    if (id === undefined) return;
    const tag = await tagByCommit(engine, service.image, id, commit);
    await pushImages(rollout, [tag]);
    images[service.name] = { image: service.image, id, tag };
  }
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

/** The image of a service before the roll-out: its name in the specification, and its id if it is on this node. */
interface LiveImage {
  readonly name: string;
  readonly id: string | null;
  readonly isJob: boolean;
}

async function readLiveImages(
  { engine }: StackRollout,
  before: StackState,
): Promise<ReadonlyMap<string, LiveImage>> {
  const live = [...before.values()].map(async ({ name, image, isJob }) => {
    const id = (await inspectImage(engine, image))?.id ?? null;
    return [name, { name: image, id, isJob }] as const;
  });
  return new Map(await Promise.all(live));
}

/**
 * Builds, names and pushes the images of the requested services. Nothing is deployed yet: if this fails, everything
 * serves as before.
 *
 * @returns the image to deploy for each service, by a name that never stands for another image; without one, a service is deployed
 * as in the stack file
 */
async function prepareStackImages(
  rollout: StackRollout,
  services: readonly StackService[],
  live: ReadonlyMap<string, LiveImage>,
): Promise<StackImages> {
  const { project, version } = rollout;
  const built = services.filter(({ isBuilt }) => version === null && isBuilt);
  // Each node pulls by itself what is not built here.
  if (version === null)
    await prepareImages({ ...rollout, withPull: false }, built, () => pruneStack(project, rollout));
  const images = new Map<string, string>();
  for (const service of project.services) {
    const running = live.get(service.name);
    // Those that were not asked for keep their images.
    const name = services.includes(service) ? await chooseImage(rollout, service, running) : running?.name;
    if (name !== undefined) images.set(service.name, name);
  }
  const known = [...live.values()].map(({ name }) => name);
  const fresh = built.flatMap(({ name }) => images.get(name) ?? []);
  await pushImages(
    rollout,
    fresh.filter((image) => !known.includes(image)),
  );
  return images;
}

/** If the build gave the image that already runs, it keeps its name, so that Swarm leaves the service alone. */
async function chooseImage(
  rollout: StackRollout,
  service: StackService,
  running: LiveImage | undefined,
): Promise<string | undefined> {
  const { engine, report, version, commit } = rollout;
  const { name, image, isBuilt } = service;
  if (version !== null) {
    // Swarm would run a job again.
    if (running?.isJob) {
      note({ report, service }, "is not run in a roll back: what it changed stays as it is");
      return running.name;
    }
    const good = version.images[name];
    // The data of a database may not go back.
    if (!good || !mayGoBack(service)) return undefined;
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
  const added = services.map(({ name, deploy }) => [name, { image: images.get(name), deploy }]);
  return JSON.stringify({ services: Object.fromEntries(added) });
}

/** `docker stack deploy` of `files`; "-" is standard input. */
function deployCommand(
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
  const steadySinceMs = new Map<string, number>();
  const reached = new Map<string, ServiceOutcome>();
  for (;;) {
    const state = await readStackState(engine, project.name);
    const atMs = performance.now() - startedMs;
    for (const service of project.services.filter(({ name }) => !reached.has(name))) {
      const { name } = service;
      const now = state.get(name);
      const detail = `The service ${name} was removed meanwhile.`;
      if (now === undefined) throw new ProblemError({ code: "container_not_healthy", detail });
      reportTasks(now);
      if (now.runningTasks < now.desiredTasks) steadySinceMs.delete(name);
      else if (!steadySinceMs.has(name)) steadySinceMs.set(name, atMs);
      const steadyMs = atMs - (steadySinceMs.get(name) ?? atMs);
      const seen = { before: before.get(name) ?? null, now, atMs, steadyMs };
      const judgement = judgeService(service, seen);
      if (typeof judgement === "object") throw await updateFailure(engine, judgement.failure, seen);
      if (judgement !== "pending") reached.set(name, outcomeFor(service, judgement, seen));
    }
    if (reached.size === project.services.length) return [...reached.values()];
    await sleep(pollMs, undefined, { signal });
  }
}

/** The other states pass within milliseconds, unless there is an error to report. */
const reportedStates = /^(?:preparing|starting|running|shutdown|complete|failed|rejected)$/;

/** Makes a function that reports each change of a service's tasks once, compared with those in `before`. */
function createTaskReport(report: Report, before: StackState) {
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
  { before, now, atMs }: Observation,
): ServiceOutcome {
  const running = (tasks: readonly Task[] = []) =>
    tasks
      .filter(({ state, isWanted }) => state === "running" && isWanted)
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  if (judgement === "unchanged") return unchangedOutcome(service, running(now.tasks));
  const containers = { old: running(before?.tasks), new: running(freshTasks({ before, now })) };
  const healthyAfterMs = Math.round(atMs);
  if (judgement === "started") return outcomeOf(service, "started", containers, { healthyAfterMs });
  const outcome = service.order === "start-first" ? "rolled" : "recreated";
  return outcomeOf(service, outcome, containers, { healthyAfterMs });
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
 * Rolls back everything that this roll-out has changed when one service fails, so that the running versions belong
 * together. Swarm itself rolls back the failed service, if its policy says so. Services that cannot run twice stay: the
 * data of a database may not go back. So do jobs, which Swarm would run again, and new services, for inspection. The names in the
 * stack file are the running images' again: Swarm may start a task by such a name.
 */
export async function rollBackStack(
  rollout: StackRollout,
  before: StackState,
  live: ReadonlyMap<string, LiveImage>,
): Promise<void> {
  const { engine, project, signal } = rollout;
  for (const service of project.services) {
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
      const { id = null } = live.get(service.name) ?? {};
      if (service.isBuilt && id !== null && !isNamedByCommit(service.image))
        await tagImage(engine, id, service.image);
      const now = (await readStackState(engine, project.name)).get(service.name);
      if (service.replacement.how === "recreate") continue;
      if (!old || !now || now.isJob || now.definition === old.definition) continue;
      const text = (how: string) => `to the old version: ${how}`;
      await timed({ ...rollout, service }, "roll back", () => back(now), text);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const advice = `Run: docker service rollback ${project.name}_${service.name}`;
      note({ ...rollout, service }, `could not be rolled back: ${reason} ${advice}`);
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

/** The services of a stack at one moment, by their names in the stack file. */
type StackState = ReadonlyMap<string, SwarmService>;

/** A service of a stack, as Swarm reports it at one moment. */
export type SwarmService = Readonly<ReturnType<typeof readService>>;

/** A task: one container that Swarm wants, has or had. */
type Task = Readonly<ReturnType<typeof readTask>>;

interface UpdateStatus {
  readonly state:
    | "updating"
    | "paused"
    | "completed"
    | "rollback_started"
    | "rollback_paused"
    | "rollback_completed";
  readonly startedAt: string;
  readonly message: string;
}

/** Reads the services of `stack` with their tasks. */
export async function readStackState(engine: Engine, stack: string): Promise<StackState> {
  const [services, tasks] = await Promise.all([
    listOfStack<ListedService>(engine, stack, "/services?status=true&"),
    listOfStack<ListedTask>(engine, stack, "/tasks?"),
  ]);
  const oldestFirst = [...tasks].sort((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  return new Map(
    services.map((service) => {
      const name = service.Spec.Name.slice(stack.length + 1);
      const own = oldestFirst.filter(({ ServiceID }) => ServiceID === service.ID);
      return [name, readService(name, service, own)];
    }),
  );
}

/** Gets a list from the engine at `path`: the entries that belong to `stack` and match `filters`. */
function listOfStack<Entry>(
  engine: Engine,
  stack: string,
  path: string,
  filters: Readonly<Record<string, readonly string[]>> = {},
): Promise<readonly Entry[]> {
  const label = [`com.docker.stack.namespace=${stack}`];
  return getJson<readonly Entry[]>(engine, `${path}${filteredBy({ label, ...filters })}`);
}

interface ServiceSpec {
  readonly Name: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly TaskTemplate: {
    readonly ContainerSpec?: { readonly Image: string };
    readonly Placement?: Readonly<Record<string, unknown>>;
  };
  readonly EndpointSpec?: unknown;
  readonly Mode: Readonly<Record<string, unknown>>;
}

interface ListedService {
  readonly ID: string;
  readonly Version: { readonly Index: number };
  readonly Spec: ServiceSpec;
  readonly PreviousSpec?: ServiceSpec;
  readonly UpdateStatus?: {
    readonly State?: UpdateStatus["state"];
    readonly StartedAt?: string;
    readonly Message?: string;
  };
  readonly ServiceStatus?: { readonly RunningTasks: number; readonly DesiredTasks: number };
}

function readService(name: string, listed: ListedService, tasks: readonly ListedTask[]) {
  const { Spec, PreviousSpec, ServiceStatus: status, UpdateStatus: update } = listed;
  return {
    id: listed.ID,
    name,
    version: listed.Version.Index,
    /** The image as named in the stack file, without the digest from the registry. */
    image: imageOf(Spec),
    /** The image that Swarm rolls back to, if there is one. */
    previousImage: PreviousSpec ? imageOf(PreviousSpec) : null,
    /** The settings that need new tasks if they change; only for comparing. */
    definition: definitionOf(Spec),
    /** The whole specification, to send back to Swarm. */
    spec: Spec as unknown,
    desiredTasks: status?.DesiredTasks ?? 0,
    runningTasks: status?.RunningTasks ?? 0,
    /** Also past ones that Swarm still knows, oldest first. */
    tasks: tasks.map((task) => readTask(name, task)) as readonly Task[],
    update: update?.State
      ? { state: update.State, startedAt: update.StartedAt ?? "", message: update.Message ?? "" }
      : (null as UpdateStatus | null),
    /** It runs to its end, and Swarm updates it in another way than other services. */
    isJob: "ReplicatedJob" in Spec.Mode || "GlobalJob" in Spec.Mode,
  };
}

function imageOf({ Labels, TaskTemplate }: ServiceSpec): string {
  return Labels?.["com.docker.stack.image"] ?? TaskTemplate.ContainerSpec?.Image ?? "";
}

/** Without the platforms of the image: `docker stack deploy` only includes them if it has asked the registry. */
function definitionOf({ TaskTemplate, EndpointSpec }: ServiceSpec): string {
  const placement = { ...TaskTemplate.Placement, Platforms: undefined };
  return JSON.stringify([{ ...TaskTemplate, Placement: placement }, EndpointSpec]);
}

interface ListedTask {
  readonly ID: string;
  readonly CreatedAt: string;
  readonly ServiceID: string;
  readonly Slot?: number;
  readonly NodeID?: string;
  readonly DesiredState: string;
  readonly Spec?: { readonly ContainerSpec?: { readonly Env?: readonly string[] | null } };
  readonly Status: {
    readonly State: string;
    readonly Err?: string;
    readonly ContainerStatus?: { readonly ContainerID?: string };
  };
}

function readTask(service: string, { ID, Slot, NodeID = "", DesiredState, Spec, Status }: ListedTask) {
  return {
    id: ID,
    /** Short, for a person: `app.2.x7f2a`, with its number within the service or its node. */
    name: `${service}.${Slot ?? NodeID.slice(0, 5)}.${ID.slice(0, 5)}`,
    state: Status.State,
    isWanted: DesiredState === "running" || DesiredState === "ready",
    /** Why it failed, or why it cannot start; empty if there is no error. */
    error: Status.Err ?? "",
    containerId: Status.ContainerStatus?.ContainerID || null,
    /** Of its container, as `NAME=value`. The container itself can only be inspected on its own node. */
    environment: Spec?.ContainerSpec?.Env ?? [],
  };
}

/** Whether a task ended without a request. One that was stopped as unhealthy and then exited with 0 is `complete`. */
function hasFailed({ state }: Task): boolean {
  return ["failed", "rejected", "orphaned", "complete"].includes(state);
}

/** Whether Swarm is updating the service or rolling it back. */
function isUnderWay(update: UpdateStatus | null | undefined): boolean {
  return update?.state === "updating" || update?.state === "rollback_started";
}

/** A service since the stack was deployed. */
export interface Observation {
  /** As it was just before the deploy; null if it did not exist. */
  readonly before: SwarmService | null;
  readonly now: SwarmService;
  /** The time of `now`, since the deploy. */
  readonly atMs: number;
  /** How long all its tasks have run. */
  readonly steadyMs: number;
}

/** The tasks that did not exist before the deploy. */
function freshTasks({ before, now }: Pick<Observation, "before" | "now">): readonly Task[] {
  const known = new Set(before?.tasks.map(({ id }) => id));
  return now.tasks.filter(({ id }) => !known.has(id));
}

/** What a service has come to since the stack was deployed. */
type Judgement = "pending" | "unchanged" | "started" | "updated" | { readonly failure: string };

/** Without a health check, a task counts as good when it has run this long. */
const steadyEnoughMs = 3_000;
/** By then Swarm has begun an update. A change that needs no new tasks never gets one. */
const updateBeginsMs = 10_000;

/** Judges a service by its state, because `docker stack deploy` exits with 0 even after a roll back. */
export function judgeService(service: StackService, seen: Observation): Judgement {
  const judgement = judgeNow(service, seen);
  // A roll back by Swarm gets as much time again: the reason of the failure is known when it ends.
  const isGoingBack = seen.now.update?.state === "rollback_started";
  const allowedMs = (isGoingBack ? 2 : 1) * service.updateTimeoutMs;
  if (judgement !== "pending" || seen.atMs <= allowedMs) return judgement;
  return { failure: `The update of ${service.name} was not done after ${formatDuration(seen.atMs)}.` };
}

function judgeNow(service: StackService, seen: Observation): Judgement {
  const { before, now, atMs, steadyMs } = seen;
  // What runs to its end is not waited for.
  if (now.isJob || service.mayEnd) return "unchanged";
  const hasAllTasks = now.runningTasks >= now.desiredTasks;
  const isSteady = hasAllTasks && (service.hasHealthCheck || steadyMs >= steadyEnoughMs);
  if (before === null) {
    // A new service has no update, and Swarm restarts its tasks forever without reporting a failure.
    if (freshTasks(seen).some(hasFailed)) return { failure: `${service.name} could not be started.` };
    return isSteady ? "started" : "pending";
  }
  // Compared with the status before the deploy and not with a clock: the manager's may differ from ours.
  if (now.update && now.update.startedAt !== before.update?.startedAt)
    return judgeUpdate(service, now.update);
  if (now.definition !== before.definition)
    return atMs >= updateBeginsMs && isSteady ? "unchanged" : "pending";
  if (now.update?.state.endsWith("paused")) return judgeUpdate(service, now.update);
  return hasAllTasks ? "unchanged" : "pending";
}

function judgeUpdate({ name }: StackService, update: UpdateStatus): Judgement {
  if (isUnderWay(update)) return "pending";
  if (update.state === "completed") return "updated";
  const what =
    update.state === "rollback_completed"
      ? `The new version of ${name} failed, and Swarm went back to the old one`
      : `Swarm paused the update of ${name}`;
  return { failure: `${what} (${update.message}).` };
}
