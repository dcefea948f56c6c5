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
import { recordVersion } from "./record-version.ts";
import { note, outcomeOf, type Report, type ServiceOutcome, timed, unchangedOutcome } from "./report.ts";
import { selectServices, withoutOwn } from "./rollout.ts";
import { loadStack, type Stack, type StackRollout, type StackService } from "./stack.ts";
import { checkThroughProxy } from "./switch-traffic.ts";
import { imageIsGone, keptVersions, readVersions, type Version, type VersionImage } from "./versions.ts";

/**
 * Brings a stack to the state in its file and its sources: build and name by commit, push, `docker stack deploy`, then wait until
 * Swarm has updated everything. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(context: LockedContext): Promise<readonly ServiceOutcome[]> {
  await requireManager(context.engine);
  const rollout = await openStack(context);
  const { engine, project, commit, report } = rollout;
  const services = selectServices(rollout, rollout.names);
  report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
  await recoverStack(rollout);
  const before = await readStackState(engine, project.name);
  // Read before the build, which may take a name from a running image.
  const live = await imagesOf(rollout, before);
  let outcomes: readonly ServiceOutcome[] = [];
  try {
    await deployStack(rollout, await prepareStackImages(rollout, services, before, live));
    const wait = () => waitForServices(rollout, before);
    outcomes = (await timed(rollout, "update", wait, "Swarm is done")).result;
    for (const [index, service] of project.services.entries())
      if (outcomes[index]?.outcome !== "unchanged") await checkThroughProxy({ ...rollout, service });
  } catch (error) {
    await rollBackStack(rollout, before, live);
    throw error;
  }
  await recordVersion(rollout, async () => imagesOf(rollout, await readStackState(engine, project.name)));
  if (rollout.withPrune) await pruneBeside(rollout, () => pruneStack(project, rollout));
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
async function recoverStack(rollout: StackRollout): Promise<void> {
  const present = await readStackState(rollout.engine, rollout.project.name);
  for (const service of rollout.project.services) {
    if (!isUnderWay(present.get(service.name))) continue;
    const finish = () => waitForUpdate(rollout, service);
    const text = (ended: SwarmService | undefined) =>
      `an update of an earlier roll-out: ${ended?.UpdateStatus?.State ?? "gone"}`;
    await timed({ ...rollout, service }, "recover", finish, text);
  }
}

/** Waits until Swarm has finished the update or the roll back of a service, but no longer than that may take. */
async function waitForUpdate({ engine, project, signal }: StackRollout, service: StackService) {
  const deadlineMs = performance.now() + service.updateTimeoutMs;
  for (;;) {
    const now = (await readStackState(engine, project.name)).get(service.name);
    if (!isUnderWay(now) || performance.now() > deadlineMs) return now;
    await sleep(pollMs, undefined, { signal });
  }
}

/** Asks Swarm to roll a service back to its previous specification. */
async function rollBackService(engine: Engine, { ID, Version, Spec }: SwarmService): Promise<void> {
  await engine.post(`/services/${ID}/update?version=${Version.Index}&rollback=previous`, Spec);
}

/** The images that the services run, by service. One that is only on another node is identified by its name. */
async function imagesOf({ engine, project }: StackRollout, state: StackState): Promise<Version["images"]> {
  const images: Record<string, VersionImage> = {};
  for (const [name, { Spec }] of state) {
    const tag = imageIn(Spec);
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    images[name] = { image, id: (await inspectImage(engine, tag))?.id ?? tag, tag };
  }
  return images;
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
  before: StackState,
  live: Version["images"],
): Promise<StackImages> {
  const { project, version } = rollout;
  const built = services.filter(({ isBuilt }) => version === null && isBuilt);
  // Each node pulls by itself what is not built here.
  if (version === null) await prepareImages({ ...rollout, withPull: false }, built);
  const images = new Map<string, string>();
  for (const service of project.services) {
    const { name } = service;
    const running = live[name];
    // Swarm would run a job again.
    const isJobInRollBack = version !== null && runsToItsEnd(before.get(name));
    if (isJobInRollBack)
      note({ ...rollout, service }, "is not run in a roll back: what it changed stays as it is");
    const isKept = isJobInRollBack || !services.includes(service);
    const image = isKept ? running?.tag : await chooseImage(rollout, service, running);
    if (image !== undefined) images.set(name, image);
    if (image !== undefined && service.isBuilt && version === null && image !== running?.tag)
      await pushImage(rollout, image);
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
  const failed = `The image ${image} could not be pushed. Is the registry up, and was docker login run for this user?`;
  const push = () =>
    run(rollout, ["docker", "push", image], "image_push_failed", failed, { timeoutMs: pushTimeoutMs });
  await timed(rollout, "push", push, image);
}

const deployTimeoutMs = 5 * 60_000;
const pushTimeoutMs = 30 * 60_000;

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
  const { project, own, target, withPull } = rollout;
  const docker = (argv: Argv, options: Partial<ComposeRun>) =>
    run(rollout, argv, "stack_refused", `${argv.slice(0, 3).join(" ")} failed.`, options);
  const named = (files: readonly string[]) => files.flatMap((file) => ["--compose-file", file]);
  const deploy = async () => {
    const given = [...target.files, "-"];
    const input = deployInput(project.services, images);
    // Asking the registry for every image would also update those that this commit did not change.
    const changed = [...images.values()].some(namesRegistry) ? "changed" : "never";
    const options = [
      "--detach=true",
      "--with-registry-auth",
      `--resolve-image=${withPull ? "always" : changed}`,
      project.name,
    ];
    if (own === null) return docker(["docker", "stack", "deploy", ...named(given), ...options], { input });
    // `docker stack deploy` leaves services alone that are not in its file.
    const file = await docker(["docker", "stack", "config", ...named(given)], { input });
    const names = project.services.map(({ name }) => name);
    // Variables are filled in already: what still looks like one is text.
    const others = (await onlyServices(file, names)).replaceAll("$", () => "$$");
    // Docker resolves the relative paths in a file on standard input from the working directory.
    const directory = dirname(target.files[0] ?? ".");
    return docker(["docker", "stack", "deploy", ...named(["-"]), ...options], { input: others, directory });
  };
  const without = own === null ? "" : `, without ${own}, which runs this`;
  await timed(rollout, "deploy", deploy, () => `stack ${project.name}${without}`);
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
  { engine, project, report, signal }: StackRollout,
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  const startedMs = performance.now();
  const reportTasks = createTaskReport(report, before);
  const steadySinceMs = new Map<string, number>();
  const outcomes = new Map<string, ServiceOutcome>();
  for (;;) {
    const state = await readStackState(engine, project.name);
    const atMs = performance.now() - startedMs;
    for (const service of project.services.filter(({ name }) => !outcomes.has(name))) {
      const { name } = service;
      const now = state.get(name);
      const detail = `The service ${name} was removed meanwhile.`;
      if (now === undefined) throw new ProblemError({ code: "container_not_healthy", detail });
      reportTasks(name, now);
      if (!hasAllTasks(now)) steadySinceMs.delete(name);
      else if (!steadySinceMs.has(name)) steadySinceMs.set(name, atMs);
      const steadyMs = atMs - (steadySinceMs.get(name) ?? atMs);
      const seen = { before: before.get(name) ?? null, now, atMs, steadyMs };
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

/** Makes a function that reports each change of a service's tasks once, compared with those in `before`. */
function createTaskReport(report: Report, before: StackState) {
  const textOf = ({ Status: { State, Err } }: Task) => (Err ? `${State}: ${Err}` : State);
  const known = [...before.values()].flatMap(({ tasks }) => tasks);
  const reported = new Map(known.map((task) => [task.ID, textOf(task)]));
  return (service: string, { tasks }: SwarmService): void => {
    for (const task of tasks) {
      const text = textOf(task);
      if (reported.get(task.ID) === text || !(reportedStates.test(task.Status.State) || task.Status.Err))
        continue;
      reported.set(task.ID, text);
      report({ event: "note", service, text: `${nameOf(service, task)} ${text}` });
    }
  };
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
export function judgeService(service: StackService, seen: Observation): Judgement {
  const judgement = judgeNow(service, seen);
  // A roll back by Swarm gets as much time again: the reason of the failure is known when it ends.
  const isGoingBack = seen.now.UpdateStatus?.State === "rollback_started";
  const allowedMs = (isGoingBack ? 2 : 1) * service.updateTimeoutMs;
  if (judgement !== "pending" || seen.atMs <= allowedMs) return judgement;
  return { failure: `The update of ${service.name} was not done after ${formatDuration(seen.atMs)}.` };
}

function judgeNow(service: StackService, seen: Observation): Judgement {
  const { before, now, atMs, steadyMs } = seen;
  // What runs to its end is not waited for.
  if (runsToItsEnd(now) || service.mayEnd) return "unchanged";
  const isSteady = hasAllTasks(now) && (service.hasHealthCheck || steadyMs >= steadyEnoughMs);
  if (before === null) {
    // A new service has no update, and Swarm restarts its tasks forever without reporting a failure.
    if (freshTasks(seen).some(hasFailed)) return { failure: `${service.name} could not be started.` };
    return isSteady ? "started" : "pending";
  }
  const { State: state = "", StartedAt, Message = "" } = now.UpdateStatus ?? {};
  const isChanged = definitionOf(now) !== definitionOf(before);
  // Compared with the status before the deploy and not with a clock: the manager's may differ from ours.
  const isOfThis = state !== "" && StartedAt !== before.UpdateStatus?.StartedAt;
  if (isOfThis || (!isChanged && state.endsWith("paused"))) {
    if (isUnderWay(now)) return "pending";
    if (state === "completed") return "updated";
    const wentBack = `The new version of ${service.name} failed, and Swarm went back to the old one`;
    const what = state === "rollback_completed" ? wentBack : `Swarm paused the update of ${service.name}`;
    return { failure: `${what} (${Message}).` };
  }
  if (isChanged) return atMs >= updateBeginsMs && isSteady ? "unchanged" : "pending";
  return hasAllTasks(now) ? "unchanged" : "pending";
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
export async function rollBackStack(
  rollout: StackRollout,
  before: StackState,
  live: Version["images"],
): Promise<void> {
  const { engine, project, signal } = rollout;
  for (const service of project.services) {
    const { name, image, isBuilt, replacement } = service;
    const old = before.get(name);
    const running = live[name];
    const back = async (now: SwarmService) => {
      await rollBackService(engine, now);
      // After a request to stop there is no time to watch: Swarm goes on by itself.
      if (signal.aborted) return "asked for";
      const state = (await waitForUpdate(rollout, service))?.UpdateStatus?.State;
      return state === "rollback_completed" ? "done" : "not done in time; Swarm goes on";
    };
    try {
      if (isBuilt && running && running.id !== running.tag && !isNamedByCommit(image))
        await tagImage(engine, running.id, image);
      const now = (await readStackState(engine, project.name)).get(name);
      if (replacement.how === "recreate" || !old || !now || runsToItsEnd(now)) continue;
      if (definitionOf(now) === definitionOf(old)) continue;
      await timed(
        { ...rollout, service },
        "roll back",
        () => back(now),
        (how) => `to the old version: ${how}`,
      );
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const advice = `Run: docker service rollback ${project.name}_${name}`;
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
  const specs = [...(await readStackState(engine, stack.name)).values()].flatMap(({ Spec, PreviousSpec }) => [
    Spec,
    PreviousSpec ?? Spec,
  ]);
  const inUse = await Promise.all(
    specs.map(imageIn).map(async (tag) => ({ id: (await inspectImage(engine, tag))?.id ?? tag, tag })),
  );
  const kept = keptVersions(await readVersions(versionsPath), keep).flatMap(({ images }) =>
    Object.values(images),
  );
  const needed = new Set([...inUse, ...kept].map(({ id }) => id));
  const status = ["created", "exited", "dead"];
  type Ended = { readonly Id: string; readonly ImageID: string };
  for (const { Id, ImageID } of await listOfStack<Ended>(engine, stack.name, "/containers/json?all=1&", {
    status,
  }))
    if (!needed.has(ImageID)) await removeContainer(engine, Id);
  const images = stack.services.map(({ image }) => image);
  return prune({ ...request, project: { name: stack.name, images }, inUse });
}

/** The services of a stack at one moment, by their names in the stack file. */
type StackState = ReadonlyMap<string, SwarmService>;

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

/** Reads the services of `stack` with their tasks. */
export async function readStackState(engine: Engine, stack: string): Promise<StackState> {
  const [services, tasks] = await Promise.all([
    listOfStack<Omit<SwarmService, "tasks">>(engine, stack, "/services?status=true&"),
    listOfStack<Task>(engine, stack, "/tasks?"),
  ]);
  const oldestFirst = tasks.toSorted((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  return new Map(
    services.map((service) => {
      const own = oldestFirst.filter(({ ServiceID }) => ServiceID === service.ID);
      return [service.Spec.Name.slice(stack.length + 1), { ...service, tasks: own }];
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

/** A job, which Swarm updates in another way than other services. */
function runsToItsEnd(service: SwarmService | undefined): boolean {
  return service !== undefined && ("ReplicatedJob" in service.Spec.Mode || "GlobalJob" in service.Spec.Mode);
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
