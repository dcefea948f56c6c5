import type { ComposeService, ComposeUpdateConfig } from "../../platform/compose/model.ts";
import { namesRegistry } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import { parseGoDurationMs, type RolloutService } from "../compose/project.ts";

/** How Swarm updates a service: as the stack file says, and if it says nothing, in a way that drops no request. */
export interface UpdatePolicy {
  readonly order: "start-first" | "stop-first";
  /** Additions to the service's `deploy` section; settings in the file win. */
  readonly added: {
    readonly update_config?: Pick<ComposeUpdateConfig, "order" | "failure_action">;
    readonly rollback_config?: Pick<ComposeUpdateConfig, "order">;
  };
  /** Notes for a person about risky settings in the file. */
  readonly warnings: readonly string[];
  /** How long an update may take in all. A roll back may take as long again. */
  readonly timeoutMs: number;
}

/** To pull an image from a registry to a node that does not have it. */
const pullMs = 120_000;

/** For Swarm to place a task and create its container. */
const placeMs = 5_000;

/** Swarm's own (and docker stack deploy's) defaults. */
const defaults = { parallelism: 1, monitor: "5s", stopGrace: "10s" };

/**
 * The policy of a service. Swarm's own defaults are stop-first and pause, so start-first and rollback are added. Services
 * that cannot run twice are left as in the file.
 *
 * @throws ProblemError `compose_invalid` if failures are ignored (`failure_action: continue`)
 */
export function updatePolicyOf(service: RolloutService, said: ComposeService): UpdatePolicy {
  const update = said.deploy?.update_config ?? {};
  const { failure_action = "rollback" } = update;
  const isSingle = service.replacement.how === "recreate";
  if (!isSingle && failure_action === "continue") throw ignoresFailures(service.name);
  const usual = isSingle ? "stop-first" : "start-first";
  const order = update.order === "start-first" || update.order === "stop-first" ? update.order : usual;
  const timeoutMs = timeoutOf(service, said, { ...update, order });
  const update_config = { order, failure_action } as const;
  if (isSingle) return { order, added: {}, warnings: [], timeoutMs };
  const rollback_config = { order: said.deploy?.rollback_config?.order ?? order };
  const warnings = warningsOf(service.name, order, failure_action);
  return { order, added: { update_config, rollback_config }, warnings, timeoutMs };
}

function ignoresFailures(name: string): ProblemError {
  const detail = `${name} has failure_action "continue": a version that fails would replace the one that serves. Write failure_action: rollback. Nothing was changed.`;
  return new ProblemError({ code: "compose_invalid", detail });
}

function warningsOf(name: string, order: string, failureAction: string): readonly string[] {
  const warnings: string[] = [];
  if (order === "stop-first") {
    warnings.push(`the stack file says order: stop-first, so ${name} is away while its tasks are replaced`);
  }
  if (failureAction !== "rollback") {
    warnings.push(
      `the stack file says failure_action: ${failureAction}, so Swarm does not roll back by itself`,
    );
  }
  return warnings;
}

function timeoutOf(service: RolloutService, said: ComposeService, update: ComposeUpdateConfig): number {
  const parallelism = update.parallelism ?? defaults.parallelism;
  const rounds = parallelism === 0 ? 1 : Math.max(1, Math.ceil(service.replicas / parallelism));
  const ms = (text: string) => parseGoDurationMs(text) ?? 0;
  const stopMs = ms(update.order === "start-first" ? "0s" : (said.stop_grace_period ?? defaults.stopGrace));
  const roundMs = service.healthyTimeoutMs + placeMs + ms(update.delay ?? "0s") + stopMs;
  const isHere = service.isBuilt && !namesRegistry(service.image);
  return rounds * roundMs + ms(update.monitor ?? defaults.monitor) + (isHere ? 0 : pullMs);
}
