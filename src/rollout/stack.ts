import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/values";
import { causeIn } from "#platform/command-cause";
import {
  type ComposeModel,
  type ComposeOptions,
  type ComposeService,
  loadModel,
  runCompose,
} from "#platform/compose";
import {
  inspectContainer,
  inspectImage,
  namesRegistry,
  tagByCommit,
  tagImage,
} from "#platform/docker/containers";
import { type Engine, filteredBy, getJson } from "#platform/docker/engine";
import { evidenceOf } from "#platform/docker/health";
import { withDotenv } from "#platform/env-file";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { type Problem, ProblemError } from "#problems";
import type { LockedContext, RolloutContext } from "./context.ts";
import { prepareImages, recordVersion } from "./images.ts";
import { stackFiles } from "./locate-project.ts";
import { goDurationMs, mayGoBack, type RolloutProject, type RolloutService, readProject } from "./project.ts";
import { type Pruned, type PruneRequest, prune, pruneBeside } from "./prune.ts";
import { note, outcomeOf, type ServiceOutcome, timed } from "./report.ts";
import type { Version, VersionImage } from "./state.ts";
import { checkThroughProxy } from "./switch-traffic.ts";

/** A stack as a roll-out sees it. */
export interface Stack extends RolloutProject {
  readonly services: readonly StackService[];
}

export interface StackService extends RolloutService {
  readonly hasHealthCheck: boolean;
  /** How Swarm updates it, as added to its `deploy` section: the file's own settings win. */
  readonly deploy: object | undefined;
  /** Whether the new task starts before the old one stops. */
  readonly startsFirst: boolean;
  /** How long the update of one task may take, and how long Swarm watches the last one. A roll back may take as long again. */
  readonly taskMs: number;
  readonly monitorMs: number;
}

/** What the steps of a stack's roll-out work with. */
export interface StackRollout extends RolloutContext {
  readonly project: Stack;
}

/**
 * Brings a stack to the state in its file and its sources: build and name by commit, push, `docker stack deploy`, then wait until
 * Swarm has updated everything. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(context: LockedContext): Promise<readonly ServiceOutcome[]> {
  if (context.names.length > 0)
    throw invalid("A stack is rolled out as a whole: name no service. Nothing was changed.");
  const read = () => loadStack(context);
  const { result } = await timed(context, "read", read, ({ project }) => `stack ${project.name}`);
  const rollout: StackRollout = { ...context, ...result };
  const { project, commit, report } = rollout;
  const services = project.services.map(({ name }) => name);
  report({ event: "started", project: project.name, commit, services });
  await endEarlierUpdates(rollout);
  const before = await readStackState(rollout);
  // Read before the build, which may take a name from a running image.
  const live = await imagesOf(rollout, before);
  let outcomes: readonly ServiceOutcome[] = [];
  try {
    await deployStack(rollout, await prepareStackImages(rollout, live));
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

/** Lets Swarm finish the update of an earlier, killed roll-out: else it would go back to that version if the new one fails. */
async function endEarlierUpdates(rollout: StackRollout): Promise<void> {
  const present = await readStackState(rollout);
  for (const service of rollout.project.services) {
    if (!isUnderWay(present.get(service.name))) continue;
    const on = { ...rollout, service };
    const textOf = (end: string) => `an update of an earlier roll-out: ${end}`;
    await timed(on, "recover", () => endOfUpdate(rollout, service), textOf);
  }
}

/**
 * Waits until Swarm has finished the update or the roll back of a service, but no longer than that may take.
 *
 * @returns the state of the update
 */
async function endOfUpdate(rollout: StackRollout, service: StackService): Promise<string> {
  const startedMs = performance.now();
  for (;;) {
    const now = (await readStackState(rollout)).get(service.name);
    const isLate = performance.now() > startedMs + allowedFor(service, now);
    if (!isUnderWay(now) || isLate) return now?.UpdateStatus?.State ?? "gone";
    await sleep(pollMs, undefined, { signal: rollout.signal });
  }
}

/** The images that the services run, by service. One that is only on another node is identified by its name. */
async function imagesOf({ engine, project }: StackRollout, state: StackState): Promise<Version["images"]> {
  const images = [...state].map(async ([name, { Spec }]) => {
    const tag = imageIn(Spec);
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    return [name, { image, id: await imageIdOf(engine, tag), tag }] as const;
  });
  return Object.fromEntries(await Promise.all(images));
}

/** The name itself if the image is only on another node. */
async function imageIdOf(engine: Engine, tag: string): Promise<string> {
  return (await inspectImage(engine, tag))?.id ?? tag;
}

/** The image to deploy for a service, by a name that never stands for another one; without one, it is deployed as in the file. */
type StackImages = ReadonlyMap<string, string>;

/** Builds, names and pushes the images. Nothing is deployed yet: if this fails, everything serves as before. */
async function prepareStackImages(rollout: StackRollout, live: Version["images"]): Promise<StackImages> {
  const { project, version, withBuild } = rollout;
  // Each node pulls by itself what is not built here.
  const built = project.services.filter(({ isBuilt }) => isBuilt);
  if (version === null && withBuild) await prepareImages({ ...rollout, withPull: false }, built);
  const images = new Map<string, string>();
  for (const service of project.services) {
    const running = live[service.name];
    const image = await chooseImage(rollout, service, running);
    if (image === undefined) continue;
    images.set(service.name, image);
    if (version === null && image !== running?.tag) await pushImage(rollout, image);
  }
  return images;
}

async function chooseImage(
  { engine, version, commit }: StackRollout,
  service: StackService,
  running: VersionImage | undefined,
): Promise<string | undefined> {
  const { name, image, isBuilt } = service;
  if (version !== null) {
    if (service.mayEnd) return running?.tag; // Swarm would run it again.
    // The data of a database may not go back.
    return mayGoBack(service) ? version.images[name]?.tag : undefined;
  }
  const id = isBuilt ? (await inspectImage(engine, image))?.id : undefined;
  if (id === undefined) return undefined; // The nodes pull it.
  // If the build gave the image that already runs, it keeps its name, so that Swarm leaves the service alone. The name in the
  // file is no such name: the next build takes it.
  return running?.id === id && running.tag !== image ? running.tag : tagByCommit(engine, image, id, commit);
}

/** Pushes an image whose name contains a registry, so that every node can pull it. */
async function pushImage(rollout: StackRollout, image: string): Promise<void> {
  if (!namesRegistry(image)) return;
  const detail = `The image ${image} could not be pushed. Is the registry up, and was docker login run for this user?`;
  const push = () => run(rollout, ["docker", "push", image], { code: "image_push_failed", detail });
  await timed(rollout, "push", push, image);
}

/**
 * Deploys the stack. Swarm then works on by itself.
 *
 * @throws ProblemError `stack_refused` with Docker's message
 */
async function deployStack(rollout: StackRollout, images: StackImages): Promise<void> {
  const { project, target, withPull } = rollout;
  // Asking the registry for every image would also update those that this commit did not change.
  const changed = [...images.values()].some(namesRegistry) ? "changed" : "never";
  const resolve = `--resolve-image=${withPull ? "always" : changed}`;
  const files = [...target.files, "-"].flatMap((file) => ["--compose-file", file]);
  const options = ["--detach=true", "--with-registry-auth", resolve, ...files, project.name];
  const failure = { code: "stack_refused", detail: "docker stack deploy failed." } as const;
  const input = deployInput(project.services, images);
  const deploy = () => run(rollout, ["docker", "stack", "deploy", ...options], failure, input);
  await timed(rollout, "deploy", deploy, `stack ${project.name}`);
}

/** Runs `argv`. @throws ProblemError `failure` with Docker's message */
async function run(rollout: StackRollout, argv: Argv, failure: Problem, input?: string): Promise<void> {
  // A push of a large image takes its time.
  const ending = await runCompose(rollout, argv, { timeoutMs: 30 * 60_000, input });
  if (hasSucceeded(ending)) return;
  const cause = causeIn(ending.lastLines);
  const detail = cause === null ? failure.detail : `${failure.detail} ${cause}.`;
  throw new ProblemError({ ...failure, detail, evidence: ending.lastLines });
}

/** What a roll-out adds to the stack file: images by their names with the commit, and an update that starts the new task first. */
export function deployInput(services: readonly StackService[], images: StackImages): string {
  const added = services.map(({ name, deploy }) => [name, { image: images.get(name), deploy }]);
  return JSON.stringify({ services: Object.fromEntries(added) });
}

const pollMs = 200;

/**
 * Waits until Swarm has brought each service to its new state.
 *
 * @param before the stack just before the deploy
 * @returns the outcome of each service, in their order
 * @throws ProblemError `container_not_healthy` at the first service that Swarm rolled back, paused or did not update in time
 */
async function waitForServices(rollout: StackRollout, before: StackState) {
  const { engine, project, signal } = rollout;
  const startedMs = performance.now();
  const outcomes = new Map<string, ServiceOutcome>();
  for (;;) {
    const state = await readStackState(rollout);
    const atMs = performance.now() - startedMs;
    for (const service of project.services.filter(({ name }) => !outcomes.has(name))) {
      const { name } = service;
      const now = state.get(name);
      if (!now) throw updateFault(`The service ${name} was removed meanwhile.`);
      const seen = { before: before.get(name) ?? null, now, atMs };
      const judgement = judgeService(service, seen);
      if (typeof judgement === "object") throw await updateFailure(engine, service, judgement.failure, seen);
      if (judgement !== "pending") outcomes.set(name, outcomeFor(service, judgement, seen));
    }
    if (outcomes.size === project.services.length)
      return project.services.flatMap(({ name }) => outcomes.get(name) ?? []);
    await sleep(pollMs, undefined, { signal });
  }
}

/** A service since the stack was deployed. */
export interface Observation {
  /** As it was just before the deploy; null if it did not exist. */
  readonly before: SwarmService | null;
  readonly now: SwarmService;
  /** The time of `now`, since the deploy. */
  readonly atMs: number;
}

/** What a service has come to since the stack was deployed. */
type Judgement = "pending" | "unchanged" | "started" | "updated" | { readonly failure: string };

/**
 * By then Swarm has begun an update, and a new task that cannot run has ended. A change that needs no new tasks never gets an
 * update, and a task without a health check is never called healthy.
 */
const settledMs = 10_000;

/** Judges a service by its state, because `docker stack deploy` exits with 0 even after a roll back. */
export function judgeService(service: StackService, { before, now, atMs }: Observation): Judgement {
  const { name, mayEnd, hasHealthCheck } = service;
  const { State: state = "", StartedAt, Message = "" } = now.UpdateStatus ?? {};
  // A roll back by Swarm gets as much time again: the reason of the failure is known when it ends.
  const allowedMs = (state === "rollback_started" ? 2 : 1) * allowedFor(service, now);
  const late = { failure: `The update of ${name} was not done after ${formatDuration(atMs)}.` };
  const pending = atMs > allowedMs ? late : "pending";
  // What runs to its end is not waited for.
  if (mayEnd) return "unchanged";
  if (before === null) {
    // A new service has no update, and Swarm restarts its tasks forever without reporting a failure.
    if (now.tasks.some(hasFailed)) return { failure: `${name} could not be started.` };
    return hasAllTasks(now) && (hasHealthCheck || atMs >= settledMs) ? "started" : pending;
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
  return hasAllTasks(now) && (!isChanged || atMs >= settledMs) ? "unchanged" : pending;
}

function outcomeFor(
  service: StackService,
  judgement: "unchanged" | "started" | "updated",
  { before, now, atMs }: Observation,
): ServiceOutcome {
  const running = ({ tasks = [] }: Partial<SwarmService>) =>
    tasks
      .filter((task) => task.Status.State === "running" && task.DesiredState === "running")
      .map((task) => ({ name: nameOf(service.name, task) }))
      .toSorted((one, other) => one.name.localeCompare(other.name));
  const fresh = running(now);
  if (judgement === "unchanged") return outcomeOf(service, "unchanged", { old: fresh, new: fresh });
  const updated = service.startsFirst ? "rolled" : "recreated";
  const outcome = judgement === "updated" ? updated : judgement;
  const seen = { healthyAfterMs: Math.round(atMs) };
  return outcomeOf(service, outcome, { old: running(before ?? {}), new: fresh }, seen);
}

/** The error of a service that failed, with the failing task's error, health output and last log lines. */
export async function updateFailure(
  engine: Engine,
  service: Pick<StackService, "name">,
  failure: string,
  seen: Pick<Observation, "before" | "now">,
): Promise<ProblemError> {
  const known = new Set(seen.before?.tasks.map(({ ID }) => ID));
  const fresh = seen.now.tasks.filter(({ ID }) => !known.has(ID));
  const isWaiting = (one: Task) => one.DesiredState === "running" && one.Status.State !== "running";
  const task = fresh.findLast(hasFailed) ?? fresh.findLast(isWaiting);
  if (task === undefined) return updateFault(failure);
  const { State, Err, ContainerStatus } = task.Status;
  // Swarm has no error for a container that was stopped as unhealthy and then exited with 0.
  const error = Err || (State === "complete" ? "it ended, or was stopped as unhealthy" : State);
  const state = hasFailed(task) ? "failed" : "waits";
  const detail = `${failure} Task ${nameOf(service.name, task)} ${state}: ${error}.`;
  const id = ContainerStatus?.ContainerID;
  if (!id) return updateFault(detail);
  // The container can only be inspected on its own node; its logs come from any.
  const environment = task.Spec?.ContainerSpec?.Env ?? [];
  const container = (await inspectContainer(engine, id)) ?? { environment, mounts: [], healthLog: [] };
  return updateFault(detail, await evidenceOf(engine, container, [`/containers/${id}`, `/tasks/${task.ID}`]));
}

function updateFault(detail: string, evidence: readonly string[] = []): ProblemError {
  return new ProblemError({ code: "container_not_healthy", detail, evidence });
}

/**
 * Rolls back everything that this roll-out has changed when one service fails, so that the running versions belong
 * together. Swarm itself rolls back the failed service, if its policy says so. Services that cannot run twice stay: the
 * data of a database may not go back. So do those that run to their end, which Swarm would run again, and new ones, for inspection. The names in the
 * stack file are the running images' again: Swarm may start a task by such a name.
 */
export async function undoStack(
  rollout: StackRollout,
  before: StackState,
  live: Version["images"],
): Promise<void> {
  const { engine, project } = rollout;
  for (const service of project.services) {
    const { name, image, isBuilt } = service;
    const running = live[name];
    try {
      if (isBuilt && running && running.id !== running.tag) await tagImage(engine, running.id, image);
      await undoService(rollout, service, before.get(name));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const advice = `Run: docker service rollback ${project.name}_${name}`;
      note({ ...rollout, service }, `could not be rolled back: ${reason} ${advice}`);
    }
  }
}

async function undoService(
  rollout: StackRollout,
  service: StackService,
  old: SwarmService | undefined,
): Promise<void> {
  const now = (await readStackState(rollout)).get(service.name);
  if (!old || !now || service.mayEnd || service.mode.how === "recreate") return;
  if (definitionOf(now) === definitionOf(old)) return;
  const path = `/services/${now.ID}/update?version=${now.Version.Index}&rollback=previous`;
  const back = async () => {
    await rollout.engine.post(path, now.Spec);
    // A request to stop ends the wait, and Swarm goes on by itself: a second roll back would bring the new version again.
    const end = await endOfUpdate(rollout, service).catch(() => null);
    return end === "rollback_completed" ? "done" : "asked for, and Swarm goes on";
  };
  await timed({ ...rollout, service }, "roll back", back, (how) => `to the old version: ${how}`);
}

/** Removes what roll-outs of this stack left on this node. Swarm keeps the last containers of each task, and with them their images. */
export async function pruneStack(
  request: Omit<PruneRequest, "project" | "inUse"> & { readonly project: Stack },
): Promise<Pruned> {
  const { engine, project } = request;
  // Swarm may start a task from the present and the previous specification by itself.
  const services = [...(await readStackState(request)).values()];
  const tags = services.flatMap(({ Spec, PreviousSpec = Spec }) => [Spec, PreviousSpec].map(imageIn));
  const inUse = await Promise.all(tags.map(async (tag) => ({ id: await imageIdOf(engine, tag), tag })));
  const images = project.services.map(({ image }) => image);
  return prune({ ...request, project: { name: project.name, images }, inUse });
}

/** The services of a stack at one moment, by their names in the stack file. */
type StackState = ReadonlyMap<string, SwarmService>;

interface ServiceSpec {
  readonly Name: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly TaskTemplate: { readonly ContainerSpec?: { readonly Image: string }; readonly Placement?: object };
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

/** Reads the services of a stack with their tasks. */
export async function readStackState(stack: Pick<StackRollout, "engine" | "project">): Promise<StackState> {
  const { engine, project } = stack;
  const filter = filteredBy({ label: [`com.docker.stack.namespace=${project.name}`] });
  const [services, tasks] = await Promise.all([
    getJson<readonly Omit<SwarmService, "tasks">[]>(engine, `/services?status=true&${filter}`),
    getJson<readonly Task[]>(engine, `/tasks?${filter}`),
  ]);
  const oldestFirst = tasks.toSorted((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  const state = services.map((service) => {
    const own = oldestFirst.filter(({ ServiceID }) => ServiceID === service.ID);
    return [service.Spec.Name.slice(project.name.length + 1), { ...service, tasks: own }] as const;
  });
  return new Map(state);
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

function hasAllTasks({ ServiceStatus }: SwarmService): boolean {
  return !ServiceStatus || ServiceStatus.RunningTasks >= ServiceStatus.DesiredTasks;
}

/** Whether Swarm is updating the service or rolling it back. */
function isUnderWay(service: SwarmService | undefined): boolean {
  return ["updating", "rollback_started"].includes(service?.UpdateStatus?.State ?? "");
}

/** Whether a task ended without a request. One that was stopped as unhealthy and then exited with 0 is `complete`. */
function hasFailed({ Status: { State } }: Task): boolean {
  return ["failed", "rejected", "orphaned", "complete"].includes(State);
}

/** Short, for a person: `app.2.x7f2a`, with its number within the service or its node. */
function nameOf(service: string, { ID, Slot, NodeID = "" }: Task): string {
  return `${service}.${Slot ?? NodeID.slice(0, 5)}.${ID.slice(0, 5)}`;
}

/**
 * Reads the stack, with the files and variables for the commands that deploy it. Its name is `x-hotpush: { stack: shop }`
 * in the stack file, else COMPOSE_PROJECT_NAME, else the directory's name: `docker stack deploy` allows no `name:` in the file.
 *
 * @throws ProblemError `compose_invalid` with the error in the file, `configuration_invalid` if `.env` cannot be read
 */
export async function loadStack(options: ComposeOptions) {
  const { projectDirectory } = options.target;
  // Compose reads `.env` beside the file, and `docker stack deploy` does not.
  const env = withDotenv(options.env, projectDirectory);
  const target = { projectDirectory, files: stackFiles(options.target, env) };
  const model = await loadModel({ ...options, env, target });
  const name = String(model["x-hotpush"]?.stack ?? model.name);
  return { project: readStack({ ...model, name }), target, env: { ...env, COMPOSE_PROJECT_NAME: name } };
}

/** Makes the stack from compose's model of its file. Swarm detects by itself which services changed. */
export function readStack(model: ComposeModel): Stack {
  const { name, services } = readProject(asCompose(model));
  const stackServices = services.map((service) => {
    const said = model.services[service.name] ?? {};
    const hasHealthCheck = said.healthcheck !== undefined && !said.healthcheck.disable;
    const { mode = "", restart_policy: { condition = "any" } = {} } = said.deploy ?? {};
    const mayEnd = mode.endsWith("-job") || (condition !== "any" && !hasHealthCheck);
    const ending = { hasHealthCheck, mayEnd, ...timesOf(service, said) };
    return { ...service, ...ending, ...updateOf(service, said) };
  });
  return { name, services: stackServices };
}

/** Without settings that Swarm ignores, and without `pre_start`, which Docker itself refuses in a stack. A published port clashes only if it is the node's own (`mode: host`). */
function asCompose(model: ComposeModel): ComposeModel {
  const services = Object.entries(model.services).map(([name, service]) => {
    const { container_name: _, network_mode: __, depends_on: ___, ...kept } = service;
    const { links: ____, pre_start: _____, ...rest } = kept;
    const ports = (service.ports ?? []).filter(({ mode }) => mode === "host");
    // Hotpush's labels may be those of the container or of the Swarm service.
    return [name, { ...rest, ports, labels: { ...service.deploy?.labels, ...service.labels } }];
  });
  return { ...model, services: Object.fromEntries(services) };
}

/** Swarm's own defaults are stop-first and pause. Services that cannot run twice are left as in the file. */
function updateOf(
  service: RolloutService,
  { deploy: { update_config: update = {}, rollback_config: rollback = {} } = {} }: ComposeService,
): Pick<StackService, "startsFirst" | "deploy"> {
  const isSingle = service.mode.how === "recreate";
  const { failure_action = "rollback", order = isSingle ? "stop-first" : "start-first" } = update;
  const startsFirst = order === "start-first";
  if (isSingle) return { startsFirst, deploy: undefined };
  if (failure_action === "continue")
    throw invalid(
      `${service.name} has failure_action "continue": a version that fails would replace the one that serves. Write failure_action: rollback. Nothing was changed.`,
    );
  const rollback_config = { order: rollback.order ?? order };
  return { startsFirst, deploy: { update_config: { order, failure_action }, rollback_config } };
}

/** What one task may take. Swarm's defaults are 5 s of `monitor` and 10 s to stop. */
function timesOf({ healthyTimeoutMs }: RolloutService, said: ComposeService) {
  const { delay = "0s", monitor = "5s" } = said.deploy?.update_config ?? {};
  const taskMs = healthyTimeoutMs + goDurationMs(delay) + goDurationMs(said.stop_grace_period ?? "10s");
  return { taskMs, monitorMs: goDurationMs(monitor) };
}

/** As long as if Swarm updated one task at a time, which is its default. At first it places the tasks, and nodes pull the image. */
function allowedFor({ replicas, taskMs, monitorMs }: StackService, now: SwarmService | undefined): number {
  // A global service has one on each node.
  const tasks = Math.max(replicas, now?.ServiceStatus?.DesiredTasks ?? 0);
  return 125_000 + tasks * taskMs + monitorMs;
}

function invalid(detail: string): ProblemError {
  return new ProblemError({ code: "compose_invalid", detail });
}
