import { type ComposeModel, type ComposeService, isProxyImage } from "../../platform/compose/model.ts";
import { ProblemError } from "../../problems.ts";
import { namesRunToTheirEnd } from "../../rollout/compose/project.ts";
import { replacementOf } from "../../rollout/compose/replacement.ts";
import { type Check, type Fault, noComposeFile, okUnless, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { hotpushServiceOf } from "../service/own-service.ts";

/** The compose file as a rule sees it. */
export interface LintedProject {
  readonly model: ComposeModel;
  readonly roles: readonly Role[];
  /** Without those that their label recreates: their owner accepts that they are away during a roll-out. */
  readonly apps: readonly Role[];
}

/** What a service is to a roll-out. */
export interface Role {
  readonly name: string;
  readonly service: ComposeService;
  readonly kind: "app" | "proxy" | "data" | "hotpush" | "run-once";
  /** The label `hotpush.rollout`, or null. */
  readonly label: string | null;
}

type Rule = (project: LintedProject, context: DoctorContext) => readonly Fault[] | Promise<readonly Fault[]>;

/** A check of the compose file as compose resolves it. @param rule finds what costs requests */
export function lintCheck(id: string, subject: string, fact: string, rule: Rule): Check {
  return {
    id,
    group: "Compose file",
    subject,
    async probe(context) {
      const answer = await context.compose();
      if (answer.kind === "no-file") return noComposeFile;
      if (answer.kind === "swarm") return skip("a Swarm has rules of its own: docs/swarm.md");
      if (answer.kind !== "model") return skip("docker compose cannot read the file yet");
      const roles = rolesOf(answer.model);
      const apps = roles.filter(({ kind, label }) => kind === "app" && label !== "recreate");
      return okUnless(await rule({ model: answer.model, roles, apps }, context), fact);
    },
  };
}

function rolesOf(model: ComposeModel): readonly Role[] {
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

/** Why two containers of it would destroy its data, whatever its label is; null if they would not. */
export function dataOf({ image, volumes }: ComposeService): string | null {
  const unlabelled = {
    ...(image === undefined ? {} : { image }),
    ...(volumes === undefined ? {} : { volumes }),
  };
  try {
    const replacement = replacementOf(unlabelled, false);
    return replacement.how === "recreate" ? replacement.reason : null;
  } catch (error) {
    if (error instanceof ProblemError) return null;
    throw error;
  }
}

/** Whether it mounts the directory of the live files. */
export function mountsLiveFiles({ volumes = [] }: ComposeService): boolean {
  return volumes.some(({ target }) => target === "/run/live");
}
