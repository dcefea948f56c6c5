import type { ComposeOptions } from "#platform/compose";
import type { Engine } from "#platform/docker/engine";
import type { RolloutRequest } from "./context.ts";
import { type Pruned, pruneProject } from "./prune.ts";
import { pruneStack, rollOutStack } from "./roll-out-stack.ts";
import { rollOut } from "./rollout.ts";
import { chooseEngine, loadStack } from "./stack.ts";

/** What the commands do with a project, whether compose runs it on one machine or Swarm as a stack. */
export interface RolloutEngine {
  /** @throws ProblemError if the new version does not serve */
  readonly rollOut: (request: RolloutRequest) => Promise<void>;
  /** Removes old images. The caller holds the project's lock. */
  readonly prune: (request: EnginePruneRequest) => Promise<Pruned>;
}

export interface EnginePruneRequest extends ComposeOptions {
  readonly engine: Engine;
  readonly versionsPath: string;
  /** How many good versions before the present one keep their images. */
  readonly keep: number;
}

/**
 * The engine that rolls the project out.
 *
 * @throws ProblemError `configuration_invalid` or `compose_invalid` if the project names an unknown one
 */
export async function findRolloutEngine(
  request: Pick<RolloutRequest, "target" | "env" | "signal">,
): Promise<RolloutEngine> {
  return engines[await chooseEngine(request)];
}

const engines: Readonly<Record<"compose" | "swarm", RolloutEngine>> = {
  compose: {
    rollOut,
    prune: pruneProject,
  },
  swarm: {
    rollOut: rollOutStack,
    async prune(request) {
      // The commit only matters for names of images that are not built yet.
      const { project } = await loadStack(request, "0".repeat(12));
      return pruneStack(project, request);
    },
  },
};
