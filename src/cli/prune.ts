import type { Command } from "commander";
import { formatSize } from "#config/size";
import { findRolloutEngine } from "#rollout/engine";
import { lockRollout } from "#rollout/lock";
import { keptByDefault, type Pruned } from "#rollout/prune";
import { type CommandContext, newCommand, numberParser, print } from "./command.ts";
import { addProjectOptions, locateNamedProject, type ProjectOptions, runAsOwner } from "./rollout.ts";

const lockWaitS = 600;

interface PruneOptions extends ProjectOptions {
  readonly keep: number;
  readonly json?: boolean;
}

/** `hotpush prune`: prints on standard output what was removed. */
export function makePruneCommand({ env, finish }: CommandContext): Command {
  const versionCount = numberParser(0, 999, "Not a number of versions.");
  const description =
    "Remove old images of this compose project or stack: all but those of containers, of the live version and of the good versions before it. Other projects are not touched.";
  const command = newCommand("prune", description, [
    "hotpush prune            keep the live version and the 2 good ones before it",
    "hotpush prune --keep 5   for a project that is often rolled back",
  ]).option("--keep <n>", "good versions to keep before the live one", versionCount, keptByDefault);
  return addProjectOptions(command)
    .option("--json", "the result as one JSON object")
    .action(async (options: PruneOptions) =>
      finish((await runAsOwner(options, env)) ?? (await runPrune(options, env))),
    );
}

async function runPrune(options: PruneOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const pruned = await pruneProject(options, env);
  print(...(options.json ? [JSON.stringify(pruned)] : prunedLines(pruned)));
  return 0;
}

/** Holds the lock of roll-outs, because an image that a roll-out is about to start has no container yet. */
async function pruneProject({ keep, ...named }: PruneOptions, env: NodeJS.ProcessEnv): Promise<Pruned> {
  const { engine, target, lockPath, versionsPath } = await locateNamedProject(named, env);
  const lock = await lockRollout(lockPath, lockWaitS);
  try {
    const signal = new AbortController().signal;
    const options = { env, signal, lockDescriptor: lock.descriptor, target };
    const { prune } = await findRolloutEngine(options);
    return await prune({ ...options, engine, versionsPath, keep });
  } finally {
    await lock.release();
  }
}

function prunedLines({ removed, freedBytes }: Pruned): readonly string[] {
  const freed = formatSize(freedBytes);
  if (removed.length === 0) return [`Nothing to remove; ${freed} of old build cache freed.`];
  return [...removed.map((name) => `  removed ${name}`), `Freed ${freed}.`];
}
