import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/values";
import { type ComposeRun, runCompose } from "#platform/compose";
import {
  findOwnContainer,
  inspectContainer,
  inspectImage,
  isNamedByCommit,
  namesRegistry,
  removeContainer,
  tagByCommit,
  tagImage,
} from "#platform/docker/containers";
import { type Engine, filteredBy, getJson } from "#platform/docker/engine";
import { evidenceOf } from "#platform/docker/health";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { type Problem, ProblemError } from "#problems";
import type { LockedContext } from "./context.ts";
import { prepareImages, recordVersion } from "./images.ts";
import { mayGoBack, selectServices, withoutOwn } from "./project.ts";
import { keptByDefault, type Pruned, type PruneRequest, prune, pruneBeside } from "./prune.ts";
import { note, outcomeOf, type ReportScope, type ServiceOutcome, timed, unchangedOutcome } from "./report.ts";
import { loadStack, type Stack, type StackRollout, type StackService } from "./stack.ts";
import { checkThroughProxy } from "./verify.ts";
import { imageIsGone, keptVersions, readVersions, type Version, type VersionImage } from "./versions.ts";

/**
 * Brings a stack to the state in its file and its sources: build and name by commit, push, `docker stack deploy`, then wait until
 * Swarm has updated everything. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(context: LockedContext): Promise<readonly ServiceOutcome[]> {
  await requireManager(context.engine);
  const rollout = await openStack(context);
  const { project, commit, report } = rollout;
  const services = selectServices(rollout, rollout.names);
  report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
  await endEarlierUpdates(rollout);
  const before = await readStackState(rollout);
  // Read before the build, which may take a name from a running image.
  const live = await imagesOf(rollout, before);
  let outcomes: readonly ServiceOutcome[] = [];
  try {
    await deployStack(rollout, await prepareStackImages(rollout, services, live));
    outcomes = (await timed(rollout, "update", () => waitForServices(rollout, before), "Swarm is done"))
      .result;
    for (const [index, service] of project.services.entries())
      if (outcomes[index]?.outcome !== "unchanged") await checkThroughProxy({ ...rollout, service });
  } catch (error) {
    await undoStack(rollout, before, live);
    throw error;
  }
  await recordVersion(rollout, async () => imagesOf(rollout, await readStackState(rollout)));
  if (rollout.withPrune) await pruneBeside(rollout, () => pruneStack(rollout));
  return outcomes;
}

/** @throws ProblemError `swarm_inactive` */
async function requireManager(engine: Engine): Promise<void> {
  type Info = { readonly LocalNodeState?: string; readonly ControlAvailable?: boolean };
  const { Swarm } = await getJson<{ readonly Swarm?: Info }>(engine, "/info");
  if (Swarm?.ControlAvailable) return;
  const what = Swarm?.LocalNodeState === "active" ? "is a worker of its Swarm, no manager" : "is in no Swarm";
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

/** Lets Swarm finish the update of an earlier, killed roll-out: else it would go back to that version if the new one fails. */
async function endEarlierUpdates(rollout: StackRollout): Promise<void> {
  const present = await readStackState(rollout);
  for (const service of rollout.project.services) {
    if (!isUnderWay(present.get(service.name))) continue;
    const wait = () => endOfUpdate(rollout, service);
    const text = (state: string) => `an update of an earlier roll-out: ${state}`;
    await timed({ ...rollout, service }, "recover", wait, text);
  }
}

/**
 * Waits until Swarm has finished the update or the roll back of a service, but no longer than that may take.
 *
 * @returns the state of the update
 */
async function endOfUpdate(rollout: StackRollout, service: StackService): Promise<string> {
  const deadlineMs = performance.now() + service.updateTimeoutMs;
  for (;;) {
    const now = (await readStackState(rollout)).get(service.name);
    if (!isUnderWay(now) || performance.now() > deadlineMs) return now?.UpdateStatus?.State ?? "gone";
    await sleep(pollMs, undefined, { signal: rollout.signal });
  }
}

/** The images that the services run, by service. One that is only on another node is identified by its name. */
async function imagesOf({ engine, project }: StackRollout, state: StackState): Promise<Version["images"]> {
  const images: Record<string, VersionImage> = {};
  for (const [name, { Spec }] of state) {
    const tag = imageIn(Spec);
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    images[name] = { image, id: await imageIdOf(engine, tag), tag };
  }
  return images;
}

/** The name itself if the image is only on another node. */
async function imageIdOf(engine: Engine, tag: string): Promise<string> {
  return (await inspectImage(engine, tag))?.id ?? tag;
}

/** The image to deploy for a service, by a name that never stands for another one; without one, it is deployed as in the file. */
type StackImages = ReadonlyMap<string, string>;

/**
 * Builds, names and pushes the images of the requested services; the others keep theirs. Nothing is deployed yet: if this fails,
 * everything serves as before.
 */
async function prepareStackImages(
  rollout: StackRollout,
  services: readonly StackService[],
  live: Version["images"],
): Promise<StackImages> {
  const { project, version } = rollout;
  const built = version === null ? services.filter(({ isBuilt }) => isBuilt) : [];
  // Each node pulls by itself what is not built here.
  if (version === null) await prepareImages({ ...rollout, withPull: false }, built);
  const images = new Map<string, string>();
  for (const service of project.services) {
    const running = live[service.name];
    // Swarm would run a job again.
    const isJobInRollBack = version !== null && service.isJob;
    if (isJobInRollBack)
      note({ ...rollout, service }, "is not run in a roll back: what it changed stays as it is");
    const isKept = isJobInRollBack || !services.includes(service);
    const image = isKept ? running?.tag : await chooseImage(rollout, service, running);
    if (image === undefined) continue;
    images.set(service.name, image);
    if (built.includes(service) && image !== running?.tag) await pushImage(rollout, image);
  }
  return images;
}

/** If the build gave the image that already runs, it keeps its name, so that Swarm leaves the service alone. */
async function chooseImage(
  { engine, version, commit }: StackRollout,
  service: StackService,
  running: VersionImage | undefined,
): Promise<string | undefined> {
  const { name, image, isBuilt } = service;
  if (version !== null) {
    const good = version.images[name];
    // The data of a database may not go back.
    if (!good || !mayGoBack(service)) return undefined;
    if (namesRegistry(good.tag) || !isBuilt || (await inspectImage(engine, good.tag)) !== null)
      return good.tag;
    throw imageIsGone(name, good, version);
  }
  const id = isBuilt ? (await inspectImage(engine, image))?.id : undefined;
  if (id === undefined) return undefined; // The nodes pull it.
  // The next build takes the name in the file, if that has no commit.
  const isLasting = running?.tag !== image || isNamedByCommit(image);
  if (running?.id === id && isLasting) return running.tag;
  const tag = await tagByCommit(engine, image, id, commit);
  // If the stack file names images by commit itself, this commit may have given another image than before.
  return tag === running?.tag ? tagByCommit(engine, image, id, id.replace("sha256:", "")) : tag;
}

/** Pushes an image whose name contains a registry, so that every node can pull it. */
async function pushImage(rollout: StackRollout, image: string): Promise<void> {
  if (!namesRegistry(image)) return;
  const detail = `The image ${image} could not be pushed. Is the registry up, and was docker login run for this user?`;
  const failure = { code: "image_push_failed", detail } as const;
  const push = () => run(rollout, ["docker", "push", image], failure, { timeoutMs: pushTimeoutMs });
  await timed(rollout, "push", push, image);
}

const deployTimeoutMs = 5 * 60_000;
const pushTimeoutMs = 30 * 60_000;

/** Runs `argv` and gives its output. @throws ProblemError `failure` with Docker's message */
async function run(rollout: StackRollout, argv: Argv, failure: Problem, options: Partial<ComposeRun>) {
  const ending = await runCompose(rollout, argv, { timeoutMs: deployTimeoutMs, ...options });
  if (hasSucceeded(ending)) return ending.output;
  throw new ProblemError({ ...failure, evidence: ending.lastLines });
}

/**
 * Deploys the stack, but for the service that runs this. Swarm then works on by itself.
 *
 * @throws ProblemError `stack_refused` with Docker's message
 */
async function deployStack(rollout: StackRollout, images: StackImages): Promise<void> {
  const { project, own, target, withPull } = rollout;
  const docker = (command: "deploy" | "config", args: readonly string[], options: Partial<ComposeRun>) => {
    const failure = { code: "stack_refused", detail: `docker stack ${command} failed.` } as const;
    return run(rollout, ["docker", "stack", command, ...args], failure, options);
  };
  const files = [...target.files, "-"].flatMap((file) => ["--compose-file", file]);
  const input = deployInput(project.services, images);
  // Asking the registry for every image would also update those that this commit did not change.
  const changed = [...images.values()].some(namesRegistry) ? "changed" : "never";
  const resolve = `--resolve-image=${withPull ? "always" : changed}`;
  const options = ["--detach=true", "--with-registry-auth", resolve, project.name];
  const deploy = async () => {
    if (own === null) return docker("deploy", [...files, ...options], { input });
    // `docker stack deploy` leaves services alone that are not in its file.
    const file = await docker("config", files, { input });
    const names = project.services.map(({ name }) => name);
    // Variables are filled in already: what still looks like one is text.
    const others = (await onlyServices(file, names)).replaceAll("$", () => "$$");
    // Docker resolves the relative paths in a file on standard input from the working directory.
    const directory = dirname(target.files[0] ?? ".");
    return docker("deploy", ["--compose-file", "-", ...options], { input: others, directory });
  };
  const without = own === null ? "" : `, without ${own}, which runs this`;
  await timed(rollout, "deploy", deploy, `stack ${project.name}${without}`);
}

/** What a roll-out adds to the stack file: images by their names with the commit, and an update that starts the new task first. */
export function deployInput(services: readonly StackService[], images: StackImages): string {
  const added = services.map(({ name, deploy }) => [name, { image: images.get(name), deploy }]);
  return JSON.stringify({ services: Object.fromEntries(added) });
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

const pollMs = 200;

/**
 * Waits until Swarm has brought each service to its new state, and reports the progress of each task.
 *
 * @param before the stack just before the deploy
 * @returns the outcome of each service, in their order
 * @throws ProblemError `container_not_healthy` at the first service that Swarm rolled back, paused or did not update in time
 */
async function waitForServices(
  rollout: StackRollout,
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  const { engine, project, signal } = rollout;
  const startedMs = performance.now();
  const reported = new Map(
    [...before.values()].flatMap(({ tasks }) => tasks.map((task) => [task.ID, stateOf(task)])),
  );
  const steadySinceMs = new Map<string, number>();
  const outcomes = new Map<string, ServiceOutcome>();
  for (;;) {
    const state = await readStackState(rollout);
    const atMs = performance.now() - startedMs;
    for (const service of project.services.filter(({ name }) => !outcomes.has(name))) {
      const { name } = service;
      const now = state.get(name);
      const code = "container_not_healthy";
      if (!now) throw new ProblemError({ code, detail: `The service ${name} was removed meanwhile.` });
      reportTasks({ ...rollout, service }, now, reported);
      const sinceMs = hasAllTasks(now) ? (steadySinceMs.get(name) ?? atMs) : atMs;
      steadySinceMs.set(name, sinceMs);
      const seen = { before: before.get(name) ?? null, now, atMs, steadyMs: atMs - sinceMs };
      const judgement = judgeService(service, seen);
      if (typeof judgement === "object") throw await updateFailure(engine, service, judgement.failure, seen);
      if (judgement !== "pending") outcomes.set(name, outcomeFor(service, judgement, seen));
    }
    if (outcomes.size === project.services.length)
      return project.services.flatMap(({ name }) => outcomes.get(name) ?? []);
    await sleep(pollMs, undefined, { signal });
  }
}

/** The other states pass within milliseconds, unless there is an error to report. */
const reportedStates = /^(?:preparing|starting|running|shutdown|complete|failed|rejected)$/;

/** Reports each change of a service's tasks once. `reported` holds the last state of each, by its id. */
function reportTasks(
  on: ReportScope & { readonly service: StackService },
  { tasks }: SwarmService,
  reported: Map<string, string>,
): void {
  for (const task of tasks) {
    const state = stateOf(task);
    const { State, Err } = task.Status;
    if (reported.get(task.ID) === state || !(Err || reportedStates.test(State))) continue;
    reported.set(task.ID, state);
    note(on, `${nameOf(on.service.name, task)} ${state}`);
  }
}

function stateOf({ Status: { State, Err } }: Task): string {
  return Err ? `${State}: ${Err}` : State;
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

/** What a service has come to since the stack was deployed. */
type Judgement = "pending" | "unchanged" | "started" | "updated" | { readonly failure: string };

/** Without a health check, a task counts as good when it has run this long. */
const steadyEnoughMs = 3_000;
/** By then Swarm has begun an update. A change that needs no new tasks never gets one. */
const updateBeginsMs = 10_000;

/** Judges a service by its state, because `docker stack deploy` exits with 0 even after a roll back. */
export function judgeService(service: StackService, { before, now, atMs, steadyMs }: Observation): Judgement {
  const { name, isJob, mayEnd, hasHealthCheck, updateTimeoutMs } = service;
  const { State: state = "", StartedAt, Message = "" } = now.UpdateStatus ?? {};
  // A roll back by Swarm gets as much time again: the reason of the failure is known when it ends.
  const allowedMs = (state === "rollback_started" ? 2 : 1) * updateTimeoutMs;
  const late = { failure: `The update of ${name} was not done after ${formatDuration(atMs)}.` };
  const pending = atMs > allowedMs ? late : "pending";
  // What runs to its end is not waited for.
  if (isJob || mayEnd) return "unchanged";
  const isSteady = hasAllTasks(now) && (hasHealthCheck || steadyMs >= steadyEnoughMs);
  if (before === null) {
    // A new service has no update, and Swarm restarts its tasks forever without reporting a failure.
    if (now.tasks.some(hasFailed)) return { failure: `${name} could not be started.` };
    return isSteady ? "started" : pending;
  }
  const isChanged = definitionOf(now) !== definitionOf(before);
  // Compared with the status before the deploy and not with a clock: the manager's may differ from ours.
  const isOfThis = state !== "" && StartedAt !== before.UpdateStatus?.StartedAt;
  if (isOfThis || (!isChanged && state.endsWith("paused"))) {
    if (isUnderWay(now)) return pending;
    if (state === "completed") return "updated";
    const wentBack = `The new version of ${name} failed, and Swarm went back to the old one`;
    const what = state === "rollback_completed" ? wentBack : `Swarm paused the update of ${name}`;
    return { failure: `${what} (${Message}).` };
  }
  const isDone = isChanged ? atMs >= updateBeginsMs && isSteady : hasAllTasks(now);
  return isDone ? "unchanged" : pending;
}

function outcomeFor(
  service: StackService,
  judgement: "unchanged" | "started" | "updated",
  { before, now, atMs }: Observation,
): ServiceOutcome {
  const running = (tasks: readonly Task[] = []) =>
    tasks
      .filter((task) => task.Status.State === "running" && isWanted(task))
      .map((task) => ({ name: nameOf(service.name, task) }))
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  if (judgement === "unchanged") return unchangedOutcome(service, running(now.tasks));
  const containers = { old: running(before?.tasks), new: running(freshTasks({ before, now })) };
  const updated = service.order === "start-first" ? "rolled" : "recreated";
  const outcome = judgement === "started" ? "started" : updated;
  return outcomeOf(service, outcome, containers, { healthyAfterMs: Math.round(atMs) });
}

/** The error of a service that failed, with the failing task's error, health output and last log lines. */
export async function updateFailure(
  engine: Engine,
  service: Pick<StackService, "name">,
  failure: string,
  seen: Pick<Observation, "before" | "now">,
): Promise<ProblemError> {
  const code = "container_not_healthy";
  const fresh = freshTasks(seen);
  const isWaiting = (one: Task) => isWanted(one) && one.Status.State !== "running";
  const task = fresh.findLast(hasFailed) ?? fresh.findLast(isWaiting);
  if (task === undefined) return new ProblemError({ code, detail: failure });
  const { State, Err, ContainerStatus } = task.Status;
  // Swarm has no error for a container that was stopped as unhealthy and then exited with 0.
  const error = Err || (State === "complete" ? "it ended, or was stopped as unhealthy" : "");
  const name = nameOf(service.name, task);
  const detail = `${failure} Task ${name} ${hasFailed(task) ? "failed" : `is ${State}`}${error && `: ${error}`}.`;
  const containerId = ContainerStatus?.ContainerID;
  if (!containerId) return new ProblemError({ code, detail });
  // The container can only be inspected on its own node; its logs come from any.
  const environment = task.Spec?.ContainerSpec?.Env ?? [];
  const known = (await inspectContainer(engine, containerId)) ?? { environment, mounts: [], healthLog: [] };
  const evidence = await evidenceOf(engine, known, [`/containers/${containerId}`, `/tasks/${task.ID}`]);
  return new ProblemError({ code, detail, evidence });
}

/**
 * Rolls back everything that this roll-out has changed when one service fails, so that the running versions belong
 * together. Swarm itself rolls back the failed service, if its policy says so. Services that cannot run twice stay: the
 * data of a database may not go back. So do jobs, which Swarm would run again, and new services, for inspection. The names in the
 * stack file are the running images' again: Swarm may start a task by such a name.
 */
export async function undoStack(
  rollout: StackRollout,
  before: StackState,
  live: Version["images"],
): Promise<void> {
  for (const service of rollout.project.services) {
    const { name } = service;
    await undoService(rollout, service, before.get(name), live[name]).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      const advice = `Run: docker service rollback ${rollout.project.name}_${name}`;
      note({ ...rollout, service }, `could not be rolled back: ${reason} ${advice}`);
    });
  }
}

async function undoService(
  rollout: StackRollout,
  service: StackService,
  old: SwarmService | undefined,
  running: VersionImage | undefined,
): Promise<void> {
  const { engine, signal } = rollout;
  const { name, image, isBuilt, isJob, replacement } = service;
  if (isBuilt && running && running.id !== running.tag && !isNamedByCommit(image))
    await tagImage(engine, running.id, image);
  const now = (await readStackState(rollout)).get(name);
  if (!old || !now || isJob || replacement.how === "recreate") return;
  if (definitionOf(now) === definitionOf(old)) return;
  const back = async () => {
    await engine.post(`/services/${now.ID}/update?version=${now.Version.Index}&rollback=previous`, now.Spec);
    // After a request to stop there is no time to watch: Swarm goes on by itself.
    const isDone = !signal.aborted && (await endOfUpdate(rollout, service)) === "rollback_completed";
    return isDone ? "done" : "asked for, and Swarm goes on";
  };
  await timed({ ...rollout, service }, "roll back", back, (how) => `to the old version: ${how}`);
}

/**
 * Removes what roll-outs of this stack left on this node. Swarm keeps the containers of ended tasks, which would keep
 * their images: those containers whose image is not needed are removed first.
 */
export async function pruneStack(
  request: Omit<PruneRequest, "project" | "inUse"> & { readonly project: Stack },
): Promise<Pruned> {
  const { engine, project, versionsPath, keep = keptByDefault } = request;
  // Swarm may start a task from the present and the previous specification by itself.
  const services = [...(await readStackState(request)).values()];
  const tags = services.flatMap(({ Spec, PreviousSpec = Spec }) => [Spec, PreviousSpec].map(imageIn));
  const inUse = await Promise.all(tags.map(async (tag) => ({ id: await imageIdOf(engine, tag), tag })));
  const kept = keptVersions(await readVersions(versionsPath), keep);
  const needed = [...inUse, ...kept.flatMap(({ images }) => Object.values(images))].map(({ id }) => id);
  type Ended = { readonly Id: string; readonly ImageID: string };
  const filters = { status: ["created", "exited", "dead"] };
  for (const { Id, ImageID } of await listOfStack<Ended>(request, "/containers/json?all=1&", filters))
    if (!needed.includes(ImageID)) await removeContainer(engine, Id);
  const images = project.services.map(({ image }) => image);
  return prune({ ...request, project: { name: project.name, images }, inUse });
}

/** The services of a stack at one moment, by their names in the stack file. */
type StackState = ReadonlyMap<string, SwarmService>;

interface ServiceSpec {
  readonly Name: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly TaskTemplate: {
    readonly ContainerSpec?: { readonly Image: string };
    readonly Placement?: object;
  };
  readonly EndpointSpec?: unknown;
}

/** A service of a stack, as Swarm reports it, with its tasks, oldest first. */
export interface SwarmService {
  readonly ID: string;
  readonly Version: { readonly Index: number };
  readonly Spec: ServiceSpec;
  readonly PreviousSpec?: ServiceSpec;
  readonly UpdateStatus?: { readonly State?: string; readonly StartedAt?: string; readonly Message?: string };
  readonly ServiceStatus?: { readonly RunningTasks: number; readonly DesiredTasks: number };
  readonly tasks: readonly Task[];
}

/** A task: one container that Swarm wants, has or had. */
export interface Task {
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

type Named = { readonly engine: Engine; readonly project: { readonly name: string } };

/** Reads the services of a stack with their tasks. */
export async function readStackState(stack: Named): Promise<StackState> {
  const [services, tasks] = await Promise.all([
    listOfStack<Omit<SwarmService, "tasks">>(stack, "/services?status=true&"),
    listOfStack<Task>(stack, "/tasks?"),
  ]);
  const oldestFirst = tasks.toSorted((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  const named = services.map((service) => {
    const own = oldestFirst.filter(({ ServiceID }) => ServiceID === service.ID);
    return [service.Spec.Name.slice(stack.project.name.length + 1), { ...service, tasks: own }] as const;
  });
  return new Map(named);
}

/** Gets a list from the engine at `path`: the entries that belong to the stack and match `filters`. */
function listOfStack<Entry>(
  { engine, project }: Named,
  path: string,
  filters: Readonly<Record<string, readonly string[]>> = {},
): Promise<readonly Entry[]> {
  const label = [`com.docker.stack.namespace=${project.name}`];
  return getJson<readonly Entry[]>(engine, `${path}${filteredBy({ label, ...filters })}`);
}

/** The image as named in the stack file, without the digest from the registry. */
function imageIn({ Labels, TaskTemplate }: ServiceSpec): string {
  return Labels?.["com.docker.stack.image"] ?? TaskTemplate.ContainerSpec?.Image ?? "";
}

/**
 * The settings that need new tasks if they change, for comparing. Without the platforms of the image: `docker stack deploy` only
 * includes them if it has asked the registry.
 */
function definitionOf({ Spec: { TaskTemplate, EndpointSpec } }: SwarmService): string {
  const placement = { ...TaskTemplate.Placement, Platforms: undefined };
  return JSON.stringify([{ ...TaskTemplate, Placement: placement }, EndpointSpec]);
}

function hasAllTasks({ ServiceStatus: { RunningTasks, DesiredTasks } = noTasks }: SwarmService): boolean {
  return RunningTasks >= DesiredTasks;
}

const noTasks = { RunningTasks: 0, DesiredTasks: 0 };

/** Whether Swarm is updating the service or rolling it back. */
function isUnderWay(service: SwarmService | undefined): boolean {
  return ["updating", "rollback_started"].includes(service?.UpdateStatus?.State ?? "");
}

/** The tasks that did not exist before the deploy. */
function freshTasks({ before, now }: Pick<Observation, "before" | "now">): readonly Task[] {
  const known = new Set(before?.tasks.map(({ ID }) => ID));
  return now.tasks.filter(({ ID }) => !known.has(ID));
}

function isWanted({ DesiredState }: Task): boolean {
  return DesiredState === "running" || DesiredState === "ready";
}

/** Whether a task ended without a request. One that was stopped as unhealthy and then exited with 0 is `complete`. */
function hasFailed({ Status: { State } }: Task): boolean {
  return ["failed", "rejected", "orphaned", "complete"].includes(State);
}

/** Short, for a person: `app.2.x7f2a`, with its number within the service or its node. */
function nameOf(service: string, { ID, Slot, NodeID = "" }: Task): string {
  return `${service}.${Slot ?? NodeID.slice(0, 5)}.${ID.slice(0, 5)}`;
}
