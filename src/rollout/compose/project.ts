import type { ComposeModel, ComposeService } from "../../platform/compose/model.ts";
import { type Replacement, replacementOf } from "./replacement.ts";
import { defaultHealthyTimeoutMs, durationLabelMs } from "./timeouts.ts";

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
  /** Those that compose creates for the project. */
  readonly networks: readonly Network[];
  readonly replicas: number;
  readonly replacement: Replacement;
  /** Whether exit code 0 may be its good end: nothing in the compose file says that it keeps running. */
  readonly mayEnd: boolean;
  /** How long a new container may take to be healthy. */
  readonly healthyTimeoutMs: number;
  /** How long the requests and streams of the old container may take to end; null without a label. */
  readonly drainTimeoutMs: number | null;
  /** Requested through the proxy after the switch; null if the compose file has none. */
  readonly checkUrl: string | null;
}

export interface Network {
  /** Its name in the compose file, and its name in the engine. */
  readonly key: string;
  readonly name: string;
  /** What compose creates it from. */
  readonly definition: object;
}

/** Makes the project from compose's own model. */
export function readProject(model: ComposeModel): RolloutProject {
  const names = inDependencyOrder(model.services);
  const awaited = namesRunToTheirEnd(model.services);
  const services = names.flatMap((name) => {
    const service = model.services[name];
    return service ? [readService(model, name, service, awaited.has(name))] : [];
  });
  const built = new Set(services.filter(({ hasBuild }) => hasBuild).map(({ image }) => image));
  return {
    name: model.name,
    services: services.map((service) => ({ ...service, isBuilt: built.has(service.image) })),
  };
}

function readService(
  model: ComposeModel,
  name: string,
  service: ComposeService,
  isAwaited: boolean,
): Omit<RolloutService, "isBuilt"> {
  return {
    name,
    image: service.image ?? `${model.name}-${name}`,
    hasBuild: service.build !== undefined,
    networks: networksOf(model, service),
    replicas: Number(service.deploy?.replicas ?? service.scale ?? 1),
    replacement: replacementOf(service, isAwaited),
    mayEnd: mayEnd(service),
    healthyTimeoutMs:
      durationLabelMs(service, "hotpush.healthy-timeout") ?? defaultHealthyTimeoutMs(service.healthcheck),
    drainTimeoutMs: durationLabelMs(service, "hotpush.drain-timeout"),
    checkUrl: service.labels?.["hotpush.check"] || null,
  };
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

/** Services that others wait for until they have succeeded, such as a database migration. */
export function namesRunToTheirEnd(services: ComposeModel["services"]): ReadonlySet<string> {
  const conditions = Object.values(services).flatMap((service) => Object.entries(service.depends_on ?? {}));
  return new Set(
    conditions.flatMap(([name, { condition }]) =>
      condition === "service_completed_successfully" ? [name] : [],
    ),
  );
}
