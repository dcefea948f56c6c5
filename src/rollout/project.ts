import { join, relative } from "node:path";
import { parseDurationMs } from "#config/values";
import {
  type ComposeHealthcheck,
  type ComposeHook,
  type ComposeModel,
  type ComposeOptions,
  type ComposeService,
  type ComposeVolume,
  composeHash,
  nameSeparator,
  runCompose,
  startFailure,
} from "#platform/compose";
import { type Container, type ContainerMount, findOwnService } from "#platform/docker/containers";
import { type Engine, filteredBy, getJson } from "#platform/docker/engine";
import { hasEndedWell, isServing } from "#platform/docker/health";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Version } from "./state.ts";
import { withSourcesReadOnly } from "./tracked-sources.ts";

/** A compose project as a roll-out sees it. */
export interface RolloutProject {
  readonly name: string;
  /** In the order of their dependencies. */
  readonly services: readonly RolloutService[];
}

export interface RolloutService {
  readonly name: string;
  /** The name that compose looks the image up by. */
  readonly image: string;
  /** Whether its image is built here: by its own `build`, or by that of another service with the same image. */
  readonly isBuilt: boolean;
  /** Whether it has a `build` of its own. */
  readonly hasBuild: boolean;
  /** Whether that is for several platforms. */
  readonly hasManyPlatforms: boolean;
  /** Of what compose runs before its containers. */
  readonly hookImages: readonly string[];
  /** Whether each roll-out asks the registry for a newer image. */
  readonly isAlwaysPulled: boolean;
  /** Those that compose creates for the project. */
  readonly networks: readonly Network[];
  /** The services that it must wait for, also those that they wait for. */
  readonly dependsOn: readonly string[];
  /** Services that must be healthy before it starts: `condition: service_healthy`. */
  readonly awaitsHealthy: readonly string[];
  readonly replicas: number;
  readonly mode: RolloutMode;
  /** Whether exit code 0 may be its good end: nothing in the compose file says that it keeps running. */
  readonly mayEnd: boolean;
  /** How long a new container may take to be healthy. */
  readonly healthyTimeoutMs: number;
  /** Whether that is by its label. */
  readonly isLimitGiven: boolean;
  /** How long the requests and streams of the old container may take to end; null without a label. */
  readonly drainTimeoutMs: number | null;
  /** Requested through the proxy after the switch; null if the compose file has none. */
  readonly checkUrl: string | null;
  /** How long the new version is watched after the switch; 0: not at all. */
  readonly guardMs: number;
  /** Compose runs the first itself, unless a container is started without it. */
  readonly hooks: Readonly<Record<"post_start" | "pre_stop", readonly ComposeHook[]>>;
  /** The services without containers that it depends on: compose starts those with it. */
  readonly providers: readonly string[];
}

export interface Network {
  /** Its name in the compose file, and its name in the engine. */
  readonly key: string;
  readonly name: string;
  /** What compose creates it from. */
  readonly definition: object;
}

/**
 * Makes the project from compose's own model.
 *
 * @param separator between the project and the service in the name of an image that has none in the file
 */
export function readProject(model: ComposeModel, separator: string = "-"): RolloutProject {
  const names = inDependencyOrder(model.services);
  const services = names.flatMap((name) => {
    const service = model.services[name];
    return service && !service.provider ? [readService(model, name, service, separator)] : [];
  });
  const built = new Set(services.filter(({ hasBuild }) => hasBuild).map(({ image }) => image));
  for (const service of services) service.isBuilt = built.has(service.image);
  return { name: model.name, services };
}

function readService(model: ComposeModel, name: string, service: ComposeService, separator: string) {
  return {
    name,
    image: service.image ?? `${model.name}${separator}${name}`,
    isBuilt: false,
    hasBuild: service.build !== undefined,
    hasManyPlatforms: (service.build?.platforms ?? []).length > 1,
    hookImages: (service.pre_start ?? []).flatMap(({ image }) => image ?? []),
    isAlwaysPulled: service.pull_policy === "always",
    networks: networksOf(model, service),
    dependsOn: dependenciesOf(model.services, name),
    awaitsHealthy: Object.entries(service.depends_on ?? {}).flatMap(([other, { condition }]) =>
      condition === "service_healthy" ? [other] : [],
    ),
    replicas: Number(service.deploy?.replicas ?? service.scale ?? 1),
    mode: rolloutMode(model, name, service),
    mayEnd: mayEnd(service),
    healthyTimeoutMs:
      durationLabelMs(service, "hotpush.healthy-timeout") ?? defaultHealthyTimeoutMs(service.healthcheck),
    isLimitGiven: service.labels?.["hotpush.healthy-timeout"] !== undefined,
    drainTimeoutMs: durationLabelMs(service, "hotpush.drain-timeout"),
    checkUrl: service.labels?.["hotpush.check"] || null,
    guardMs: guardMs(service),
    hooks: { post_start: service.post_start ?? [], pre_stop: service.pre_stop ?? [] },
    providers: Object.keys(service.depends_on ?? {}).filter((one) => model.services[one]?.provider),
  };
}

/** @throws ProblemError `compose_invalid` for a `pre_start`, which compose runs only if no container of the service runs */
function rolloutMode({ services }: ComposeModel, name: string, service: ComposeService): RolloutMode {
  const mode = modeOf(service, namesRunToTheirEnd(services).has(name), attachedTo(services, name));
  if (mode.how !== "roll" || !service.pre_start?.length) return mode;
  const detail = `${name} has a pre_start, which compose would skip while the old container serves. Make it a service of its own that ${name} depends on with the condition service_completed_successfully, or give ${name} the label hotpush.rollout: recreate. Nothing was changed.`;
  throw new ProblemError({ code: "compose_invalid", detail });
}

/** `on-failure` does not restart a container that exited with 0. */
function mayEnd({ restart, deploy, healthcheck, labels }: ComposeService): boolean {
  const policy = restart || deploy?.restart_policy?.condition || "no";
  const isOver = /^(?:no|none|on-failure(?::\d+)?)$/.test(policy);
  const isWatched = healthcheck !== undefined && !healthcheck.disable;
  return isOver && !isWatched && !labels?.["hotpush.check"];
}

function networksOf({ networks = {} }: ComposeModel, service: ComposeService): readonly Network[] {
  return Object.keys(service.networks ?? {}).flatMap((key) => {
    const definition = networks[key];
    return definition && !definition.external ? [{ key, name: definition.name, definition }] : [];
  });
}

/** Dependencies first, otherwise in the file's order. Compose has refused cycles already. */
function inDependencyOrder(services: ComposeModel["services"]): readonly string[] {
  const ordered = new Set<string>();
  const visit = (name: string) => {
    if (ordered.has(name)) return;
    for (const dependency of Object.keys(services[name]?.depends_on ?? {})) visit(dependency);
    ordered.add(name);
  };
  for (const name of Object.keys(services)) visit(name);
  return [...ordered];
}

/** All that `name` depends on, by others too. Compose has refused cycles already. */
function dependenciesOf(services: ComposeModel["services"], name: string): readonly string[] {
  const direct = Object.keys(services[name]?.depends_on ?? {});
  return [...new Set(direct.flatMap((one) => [one, ...dependenciesOf(services, one)]))];
}

/** Services that others wait for until they have succeeded, such as a database migration. */
export function namesRunToTheirEnd(services: ComposeModel["services"]): ReadonlySet<string> {
  const conditions = Object.values(services).flatMap((service) => Object.entries(service.depends_on ?? {}));
  return new Set(
    conditions.flatMap(([name, { condition }]) =>
      condition === "service_completed_successfully" ? [name] : [],
    ),
  );
}

/** A service that is bound to one container of `name`, by its network or by a link to its name; undefined: none is. */
function attachedTo(services: ComposeModel["services"], name: string): string | undefined {
  const isAttached = ({ network_mode, ipc, pid, links = [] }: ComposeService) =>
    [network_mode, ipc, pid].includes(`service:${name}`) || links.some((link) => link.split(":")[0] === name);
  return Object.keys(services).find((other) => isAttached(services[other] ?? {}));
}

const defaultGuardMs = 10_000;

/** @throws ProblemError `compose_invalid` if the label `hotpush.guard` has no duration */
function guardMs(service: ComposeService): number {
  if (service.labels?.["hotpush.guard"] === "0") return 0;
  return durationLabelMs(service, "hotpush.guard") ?? defaultGuardMs;
}

/** Long enough for most services. Docker itself calls no container unhealthy during its start period. */
const shortestMs = 60_000;

/**
 * How long a new container may take to be healthy without a label: a minute, or as long as Docker's own health check
 * needs to call it unhealthy, plus 10 s.
 */
function defaultHealthyTimeoutMs(healthcheck: ComposeHealthcheck = { disable: true }): number {
  if (healthcheck.disable) return shortestMs;
  // Docker's defaults.
  const { start_period = "0s", interval = "30s", timeout = "30s", retries = 3 } = healthcheck;
  const untilUnhealthyMs =
    goDurationMs(start_period) + retries * (goDurationMs(interval) + goDurationMs(timeout));
  return Math.max(shortestMs, untilUnhealthyMs + 10_000);
}

/**
 * Reads a label that holds a duration, such as `hotpush.healthy-timeout: 90s`.
 *
 * @returns milliseconds, or null if the service has no such label
 * @throws ProblemError `compose_invalid` unless it is a duration above zero
 */
function durationLabelMs({ labels }: Pick<ComposeService, "labels">, label: string): number | null {
  const text = labels?.[label];
  if (text === undefined) return null;
  const ms = parseDurationMs(text);
  if (ms) return ms;
  const detail = `The label ${label} is "${text}", not a duration such as 90s.`;
  throw new ProblemError({ code: "compose_invalid", detail });
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Reads a duration as Go writes it, and compose prints what it has checked: `1m30s`, `500ms`, `2h45m0.5s`. */
export function goDurationMs(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (unitsMs[unit ?? ""] ?? 0), 0);
}

/**
 * How a new container takes the place of the old one.
 * - `roll`: both run for a while; the live file switches the proxy, if it reads one for this service.
 * - `recreate`: the old one stops first, because two cannot run; the service is down in between.
 * - `run-once`: it runs to its end, and others wait for that (a migration).
 */
export type RolloutMode =
  | { readonly how: "roll"; readonly isByLabel?: boolean }
  | { readonly how: "run-once" }
  | { readonly how: "recreate"; readonly reason: string };

/**
 * Decides it from the compose file. A service that another one waits for runs once, whatever else the file says. For
 * the others, the label `hotpush.rollout` (`live` or `recreate`) decides, or else whether two containers would
 * clash, or write to one volume: nothing but a label shows that they may.
 *
 * @param attached another service that would stay bound to the old container
 * @throws ProblemError `compose_invalid` if the label has another value
 */
export function modeOf(service: ComposeService, isAwaited: boolean, attached?: string): RolloutMode {
  const label = service.labels?.["hotpush.rollout"];
  if (label !== undefined && !["live", "recreate"].includes(label)) {
    const detail = `The label hotpush.rollout is "${label}", neither live nor recreate.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
  if (isAwaited) return { how: "run-once" };
  if (label === "recreate") return { how: "recreate", reason: "label hotpush.rollout=recreate" };
  const clash = clashOfTwo(service) ?? (attached ? `${attached} is bound to its container` : null);
  if (clash !== null) return { how: "recreate", reason: clash };
  if (label !== undefined) return { how: "roll", isByLabel: true };
  const volume = writableVolume(service);
  if (volume === null) return { how: "roll" };
  return { how: "recreate", reason: ["volume", volume.target, volume.doubt ?? ""].join(" ").trimEnd() };
}

/** Sockets, clocks and other parts of the machine, the live files, and single files of configuration: no data is there. */
const noData =
  /^\/(?:var\/)?run(?:\/|$)|\.sock$|^\/etc\/(?:localtime|timezone|hosts|ssl|letsencrypt)|^\/(?:dev|proc|sys)(?:\/|$)|\.(?:ya?ml|json|toml|ini|conf|cfg|cnf|env|xml|properties|pem|crt|key|sh|js|ts|php|html?)$/;

/**
 * The first volume of a service that its old and its new container would both write to, or null. Anonymous volumes do not
 * count, because each container has its own.
 */
export function writableVolume({ volumes = [] }: ComposeService): ComposeVolume | null {
  const isWritten = ({ type, source, target, read_only: isReadOnly = false }: ComposeVolume) =>
    (type === "volume" || type === "bind") &&
    Boolean(source) &&
    !isReadOnly &&
    ![source ?? "", target].some((path) => noData.test(path));
  return volumes.find(isWritten) ?? null;
}

/** Why the engine could not run a second container, or null. */
function clashOfTwo(service: ComposeService): string | null {
  const port = service.ports?.find(
    ({ published }) => published !== undefined && published !== "" && published !== "0",
  );
  if (port) return `publishes port ${port.published}`;
  if (service.container_name) return `container_name ${service.container_name}`;
  if (service.network_mode && !["bridge", "default", "none"].includes(service.network_mode)) {
    return `network_mode ${service.network_mode}`;
  }
  // Its processes end with the other service's container, and the old one could not be started again.
  if (service.pid?.startsWith("service:")) return `pid ${service.pid}`;
  const address = Object.values(service.networks ?? {}).find(
    (network) => network?.ipv4_address ?? network?.ipv6_address,
  );
  return address ? `fixed address ${address.ipv4_address ?? address.ipv6_address}` : null;
}

/** What a roll-out does with a service. */
export type Action =
  | { readonly kind: "leave" }
  | { readonly kind: "start" }
  | { readonly kind: "roll" }
  /** `isForced`: compose itself would see no change. */
  | { readonly kind: "recreate"; readonly reason: string; readonly isForced?: boolean }
  | { readonly kind: "run" }
  | { readonly kind: "skip" };

/** The image and configuration of a container that is up to date. */
export interface UpToDate {
  /** Null if the image is not on this machine yet: compose will pull it. */
  readonly imageId: string | null;
  /** Their `config-hash` label, as any version of compose may write it. */
  readonly configHashes: ReadonlySet<string>;
  /** Whether something else that they were started from changed. */
  readonly isChanged: boolean;
}

/**
 * Compares the containers of `service`, which has at least one replica, with the compose file and the image as they
 * are now.
 */
export function planService(
  { service, version, current }: { service: RolloutService } & Record<"version" | "current", Version | null>,
  containers: readonly Container[],
  upToDate: UpToDate,
): Action {
  const isForced = upToDate.isChanged;
  const { mode } = service;
  // A one-shot service runs in each roll-out, as with `docker compose up`: it may read files of the repository. If no other
  // service waits for it, it is recognized by how it ended, and started like any other.
  const isAwaited = mode.how === "run-once";
  const isOver = service.mayEnd && containers.length > 0 && containers.every(hasEndedWell);
  // Their changes stay, and an earlier version of them may not know those.
  if (version !== null && (isAwaited || isOver)) return { kind: "skip" };
  if (isAwaited) return { kind: "run" };
  const running = containers.filter(({ status }) => status === "running");
  const isComplete =
    running.length === service.replicas && running.every((one) => isCurrent(one, upToDate)) && !isForced;
  if (mode.how === "recreate") {
    // What an interrupted roll-out has recreated never proved good. If it is not healthy by now, it is waited for.
    const isProved =
      current === null || running.every(({ image }) => image === current.images[service.name]?.id);
    const isGood = isProved || running.every(isServing);
    return isComplete && isGood ? { kind: "leave" } : { kind: "recreate", reason: mode.reason, isForced };
  }
  if (running.length === 0) return { kind: "start" };
  if (isComplete && running.every(isServing)) return { kind: "leave" };
  const volume = anonymousVolume(service, running);
  if (volume === null) return { kind: "roll" };
  return isComplete
    ? { kind: "leave" }
    : { kind: "recreate", reason: `anonymous volume ${volume}`, isForced };
}

/** Reports whether a container has the image and the configuration of the compose file. */
export function isCurrent(
  { configHash, image }: Container,
  { configHashes, imageId }: Pick<UpToDate, "configHashes" | "imageId">,
): boolean {
  return configHashes.has(configHash) && image === imageId;
}

/**
 * The anonymous volume of a service's only container. A second container beside it would start with an empty volume,
 * and the data of the first would be lost from sight. A container that compose recreates keeps the volume. The label
 * `hotpush.rollout=live` declares that it holds nothing to keep.
 *
 * @returns the volume's path in the container, or null
 */
export function anonymousVolume(
  { mode }: Pick<RolloutService, "mode">,
  containers: readonly Container[],
): string | null {
  const [only, ...others] = containers;
  if (mode.how !== "roll" || mode.isByLabel || !only || others.length > 0) return null;
  // The engine generates the name of a volume that has none.
  const isAnonymous = ({ type, name }: ContainerMount) => type === "volume" && /^[0-9a-f]{64}$/.test(name);
  return only.mounts.find(isAnonymous)?.target ?? null;
}

/** Whether a roll back changes the image of a service: not of a one-shot service or a database. */
export function mayGoBack({ isBuilt, mode: { how } }: RolloutService): boolean {
  return how !== "run-once" && (isBuilt || how !== "recreate");
}

/**
 * Makes the project without the service in whose container this process runs: a roll-out would end with it.
 *
 * @returns `own` is that service, null if it is none of the project's
 */
export async function readProjectAround(
  options: ComposeOptions & { readonly engine: Engine },
  model: ComposeModel,
) {
  const { target, env } = options;
  const asCode = await withSourcesReadOnly(model, target.projectDirectory, env);
  const { name, services } = readProject(asCode, nameSeparator(options));
  const container = await findOwnService(options.engine);
  const own = container?.project === name ? container.service : null;
  return { project: { name, services: services.filter((service) => service.name !== own) }, own };
}

/**
 * The services to roll out.
 *
 * @throws ProblemError `service_unknown`
 */
export function selectServices(
  { project: { name, services }, own }: { readonly project: RolloutProject; readonly own: string | null },
  names: readonly string[],
): readonly RolloutService[] {
  const known = services.map((service) => service.name);
  const unknown = names.filter((one) => !known.includes(one));
  if (unknown.length === 0) return services.filter((one) => names.length === 0 || names.includes(one.name));
  const detail = unknown.some((one) => one === own)
    ? `${own} runs this roll-out, which would end with its container. To replace it, run on the server, in the project's directory: docker compose up --detach ${own}. Nothing was changed.`
    : `There is no service ${unknown.join(", ")} in the project ${name}. It has: ${known.join(", ")}.`;
  throw new ProblemError({ code: "service_unknown", detail });
}

const rehearsalTimeoutMs = 60_000;
/** The labels by which compose recognizes its networks: the name in the file, and the hash of the definition. */
const keyLabel = "com.docker.compose.network";
export const hashLabel = "com.docker.compose.config-hash";

type Asking = ComposeOptions & { readonly engine: Engine; readonly project: { readonly name: string } };

/**
 * Refuses to start containers in `networks` if compose would recreate one of these. From 2.31 on, each `up`
 * does that, whatever its options: it stops all containers of a service, and then cannot remove the network,
 * because other services use it. If the hash on the network differs from that of the file, a dry run of compose
 * decides, since other versions may compute the hash differently.
 *
 * @param argv the command that would start them
 * @throws ProblemError `network_changed`, or `container_start_failed` if the dry run fails
 */
export async function refuseChangedNetworks(
  rollout: Asking,
  networks: readonly Network[],
  argv: Argv,
): Promise<void> {
  const { engine, project } = rollout;
  const filter = filteredBy({ label: [`com.docker.compose.project=${project.name}`] });
  const present = await getJson<readonly Listed[]>(engine, `/networks?${filter}`);
  for (const network of networks) {
    const found = present.filter(({ Labels }) => Labels?.[keyLabel] === network.key);
    const own = found.find(({ Name }) => Name === network.name);
    const hash = own?.Labels?.[hashLabel];
    const isRenamed = own === undefined && found.length > 0;
    const isDoubted = hash !== undefined && hash !== composeHash(network.definition);
    if (!isRenamed && !(isDoubted && (await wouldStop(rollout, argv)))) continue;
    throw networkChanged(
      `The network ${network.name} must be recreated, because its part of the compose file changed.`,
    );
  }
}

/** The problem of a network that no roll-out can replace. */
export function networkChanged(reason: string): ProblemError {
  const detail = `${reason} All of its containers are down for some seconds meanwhile; no roll-out can avoid that. In a quiet moment, on the machine: docker compose down && docker compose up -d. No container in it was touched.`;
  return new ProblemError({ code: "network_changed", detail });
}

export interface Listed {
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/**
 * New containers start beside the present ones: `DRY-RUN MODE -  Container shop-app-1  Stopping` means that one would
 * stop.
 */
async function wouldStop(rollout: Asking, argv: Argv): Promise<boolean> {
  const [docker, plugin = "", ...rest] = argv;
  const rehearsal = [docker, plugin, "--dry-run", ...rest] as const;
  const lines: string[] = [];
  const onLine = (line: string) => lines.push(line);
  const ending = await runCompose(rollout, rehearsal, { timeoutMs: rehearsalTimeoutMs, onLine });
  if (lines.some((line) => /\bContainer\b.*\bStopp/.test(line))) return true;
  if (hasSucceeded(ending)) return false;
  throw startFailure("One of the services", "dry run", ending);
}

/**
 * Refuses a compose file in which `~` or `${HOME}` means another directory than when the containers were started, as
 * in a container of Hotpush or under sudo. With an empty directory instead of its own, a database would start without
 * its data.
 *
 * @param home the home directory that compose is given
 * @param projectDirectory mounts from in there are relative to the file, and move with it
 * @param containers those of the project
 * @throws ProblemError `compose_invalid` with the line to change
 */
export function refuseOtherHome(
  { services }: ComposeModel,
  { home, projectDirectory }: { readonly home: string | undefined; readonly projectDirectory: string },
  containers: readonly Container[],
): void {
  if (!home) return;
  const isIn = (directory: string, path: string) => path.startsWith(join(directory, "/"));
  for (const [service, { volumes = [] }] of Object.entries(services)) {
    const mounted = containers.filter((one) => one.service === service).flatMap(({ mounts }) => mounts);
    for (const { type, source = "", target } of volumes) {
      if (type !== "bind" || !isIn(home, source) || isIn(projectDirectory, source)) continue;
      const there = mounted.filter((mount) => mount.target === target).map((mount) => mount.source);
      const other = there.find((path) => path.endsWith(`/${relative(home, source)}`));
      if (other === undefined || there.includes(source)) continue;
      const detail = `${service} has ${other} at ${target}, and by the compose file it would be ${source}: "~" and \${HOME} mean another directory here. Write the whole path: ${other}:${target}. Nothing was changed.`;
      throw new ProblemError({ code: "compose_invalid", detail });
    }
  }
}
