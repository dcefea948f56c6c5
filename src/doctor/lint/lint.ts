import { type ComposeModel, type ComposeService, isProxyImage } from "../../platform/compose/model.ts";
import { keepsData } from "../../rollout/compose/keeps-data.ts";
import { namesRunToTheirEnd } from "../../rollout/compose/project.ts";
import { type Fault, noComposeFile, okUnless, type ProbeResult, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { hotpushServiceOf } from "../service/own-service.ts";

/** What a service is to a roll-out. */
export interface Role {
  readonly name: string;
  readonly service: ComposeService;
  readonly kind: "app" | "proxy" | "data" | "hotpush" | "run-once";
  /** The label `hotpush.rollout`, or null. */
  readonly label: string | null;
  /** An app without the label `recreate`, whose owner would accept that it is away during a roll-out. */
  readonly isRolled: boolean;
}

/** The compose file as a rule sees it. */
export interface LintedProject {
  readonly model: ComposeModel;
  readonly roles: readonly Role[];
}

/** Finds what a service has that costs requests. */
type Rule = (
  role: Role,
  project: LintedProject,
  context: DoctorContext,
) => readonly Fault[] | Promise<readonly Fault[]>;

/** A check of each service of the compose file, as compose resolves it. */
export function lint(rule: Rule) {
  return async (context: DoctorContext, subject: string): Promise<ProbeResult> => {
    const answer = await context.compose();
    if (answer.kind === "no-file") return noComposeFile;
    if (answer.kind === "swarm") return skip("a Swarm has rules of its own: docs/swarm.md");
    if (answer.kind !== "model") return skip("docker compose cannot read the file yet");
    const { model } = answer;
    const roles = rolesOf(model);
    const faults = await Promise.all(roles.map((role) => rule(role, { model, roles }, context)));
    return okUnless(faults.flat(), subject);
  };
}

function rolesOf(model: ComposeModel): readonly Role[] {
  const own = hotpushServiceOf(model)?.name;
  const awaited = namesRunToTheirEnd(model.services);
  return Object.entries(model.services).map(([name, service]) => {
    const kind = name === own ? "hotpush" : kindOf(service, awaited.has(name));
    const label = service.labels?.["hotpush.rollout"] ?? null;
    return { name, service, kind, label, isRolled: kind === "app" && label !== "recreate" };
  });
}

function kindOf(service: ComposeService, isAwaited: boolean): Role["kind"] {
  if (isAwaited) return "run-once";
  if (keepsData(service) !== null) return "data";
  if (mountsLiveFiles(service) || isProxyImage(service.image)) return "proxy";
  return "app";
}

/** Whether it mounts the directory of the live files. */
export function mountsLiveFiles({ volumes = [] }: ComposeService): boolean {
  return volumes.some(({ target }) => target === "/run/live");
}
