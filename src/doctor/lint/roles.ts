import { type ComposeModel, type ComposeService, isProxyImage } from "../../platform/compose/model.ts";
import { ProblemError } from "../../problems.ts";
import { namesRunToTheirEnd } from "../../rollout/compose/project.ts";
import { type Replacement, replacementOf } from "../../rollout/compose/replacement.ts";
import { hotpushServiceOf } from "../service/own-compose-service.ts";

/** What a service is to a roll-out. */
export interface Role {
  readonly name: string;
  readonly service: ComposeService;
  readonly kind: "app" | "proxy" | "data" | "hotpush" | "run-once";
  /** As the label `hotpush.rollout` says; null where there is none. */
  readonly label: string | null;
}

/** Gives every service of the project its role. Labels that cannot be are left aside: they have a check of their own. */
export function rolesOf(model: ComposeModel): readonly Role[] {
  const own = hotpushServiceOf(model)?.name;
  const awaited = namesRunToTheirEnd(model.services);
  return Object.entries(model.services).map(([name, service]) => ({
    name,
    service,
    kind: name === own ? "hotpush" : kindOf(service, awaited.has(name)),
    label: service.labels?.["hotpush.rollout"] ?? null,
  }));
}

function kindOf(service: ComposeService, isAwaited: boolean): Role["kind"] {
  if (isAwaited) return "run-once";
  if (dataOf(service) !== null) return "data";
  if (mountsLiveFiles(service) || isProxyImage(service.image)) return "proxy";
  return "app";
}

/** Why two of it would destroy its data, or null; whatever its label says. */
export function dataOf(service: ComposeService): string | null {
  const { image, volumes } = service;
  const bare = { ...(image === undefined ? {} : { image }), ...(volumes === undefined ? {} : { volumes }) };
  const replacement = replacementOrNull(bare);
  return replacement?.how === "recreate" ? replacement.reason : null;
}

/** Whether the directory of the live files is mounted in it. */
export function mountsLiveFiles({ volumes = [] }: ComposeService): boolean {
  return volumes.some(({ target }) => target === "/run/live");
}

function replacementOrNull(service: ComposeService): Replacement | null {
  try {
    return replacementOf(service, false);
  } catch (error) {
    if (error instanceof ProblemError) return null;
    throw error;
  }
}
