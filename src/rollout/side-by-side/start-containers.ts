import { setTimeout as sleep } from "node:timers/promises";
import type { Scale } from "../../platform/compose/commands.ts";
import { type CommandEnding, hasSucceeded } from "../../platform/run-command.ts";

/** Starts containers of one service. @returns how compose ended */
export type StartContainers = (scale: Scale) => Promise<CommandEnding>;

/** Services that are ready at the same moment differ by less. A run of compose takes ten times as long. */
const gatherMs = 25;

interface Asked extends Scale {
  readonly resolve: (ending: CommandEnding) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Starts the containers of several services with one run of compose, and never has two runs at once: who asks during one
 * shares the next. If a shared run fails, each of its services gets a run of its own, so that only the one that fails is
 * blamed.
 */
export function startInSharedRuns(
  run: (scales: readonly Scale[]) => Promise<CommandEnding>,
): StartContainers {
  let asked: Asked[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    await sleep(gatherMs);
    while (asked.length > 0) {
      const shared = asked;
      asked = [];
      await settle(shared);
    }
    isRunning = false;
  }

  async function settle(shared: readonly Asked[]): Promise<void> {
    try {
      const ending = await run(shared);
      if (hasSucceeded(ending) || shared.length === 1) for (const { resolve } of shared) resolve(ending);
      else for (const one of shared) await settle([one]);
    } catch (error) {
      for (const { reject } of shared) reject(error);
    }
  }

  return (scale) =>
    new Promise((resolve, reject) => {
      asked.push({ ...scale, resolve, reject });
      if (!isRunning) runAll().catch(reject);
    });
}
