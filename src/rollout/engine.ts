import { loadImageNames, loadModel } from "../platform/compose/ask-compose.ts";
import type { ComposeOptions } from "../platform/compose/run-compose.ts";
import type { Engine } from "../platform/docker/engine.ts";
import { type Pruned, prune } from "./images/prune.ts";
import type { RolloutEnding } from "./report/report.ts";
import type { RolloutRequest } from "./request.ts";
import { rollBackBy } from "./roll-back.ts";
import { rollOut } from "./rollout.ts";
import { chooseEngine, type EngineName } from "./swarm/choose-engine.ts";
import { pruneStack } from "./swarm/prune-stack.ts";
import { rollOutStack } from "./swarm/roll-out-stack.ts";
import { loadStack } from "./swarm/stack.ts";

/** What the commands do with a project, whether compose runs it on one machine or Swarm as a stack. */
export interface RolloutEngine {
  readonly rollOut: (request: RolloutRequest) => Promise<RolloutEnding>;
  /** Rolls back to the good version of `commit` (any number of its first digits), else to the previous one. */
  readonly rollBack: (request: RolloutRequest, commit: string | undefined) => Promise<RolloutEnding>;
  /** Removes old images. The caller holds the project's lock. */
  readonly prune: (request: EnginePruneRequest) => Promise<Pruned>;
}

export interface EnginePruneRequest {
  readonly engine: Engine;
  readonly options: ComposeOptions;
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

const engines: Readonly<Record<EngineName, RolloutEngine>> = {
  compose: {
    rollOut,
    rollBack: (request, commit) => rollBackBy(rollOut, request, commit),
    async prune({ options, ...request }) {
      const { name } = await loadModel(options);
      return prune({ ...request, project: { name, images: await loadImageNames(options) } });
    },
  },
  swarm: {
    rollOut: rollOutStack,
    rollBack: (request, commit) => rollBackBy(rollOutStack, request, commit),
    async prune({ options, ...request }) {
      // The commit only matters for names of images that are not built yet.
      const { stack } = await loadStack(options, "0".repeat(12));
      return pruneStack({ ...request, stack });
    },
  },
};
