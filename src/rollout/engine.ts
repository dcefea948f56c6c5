import type { ComposeOptions } from "#platform/compose";
import type { Engine } from "#platform/docker/engine";
import { ProblemError } from "#problems";
import type { RolloutRequest } from "./context.ts";
import { lockRollout } from "./lock.ts";
import { type Pruned, pruneProject } from "./prune.ts";
import { commitOf } from "./record-version.ts";
import { pruneStack, rollOutStack } from "./roll-out-stack.ts";
import { rollOutProject } from "./rollout.ts";
import { chooseEngine, loadStack } from "./stack.ts";
import { goodVersion, readVersions } from "./versions.ts";

/**
 * Rolls out a project, by compose on one machine or by Swarm as a stack. It holds the project's lock, and reports the outcomes as
 * the last event. The version to go back to is chosen under the lock: another roll-out may add one until then.
 *
 * @throws ProblemError if the new version does not serve
 */
export async function rollOut(request: RolloutRequest): Promise<void> {
  const { target, env, back, versionsPath, report, signal } = request;
  const work = (await chooseEngine(request)) === "swarm" ? rollOutStack : rollOutProject;
  const { descriptor, release } = await lockRollout(request.lockPath, request.lockWaitS, request);
  try {
    const startedMs = performance.now();
    // Before anything else: if they are damaged, this one could not be recorded either.
    const versions = await readVersions(versionsPath);
    const version = back && goodVersion(versions, back.commit);
    const commit = version?.commit ?? (await commitOf(target.projectDirectory, request.commit, env));
    const current = versions.at(-1) ?? null;
    const services = await work({ ...request, lockDescriptor: descriptor, commit, version, current });
    report({ event: "finished", durationMs: Math.round(performance.now() - startedMs), services });
  } catch (error) {
    const wasAborted = error instanceof Error && error.name === "AbortError" && signal.aborted;
    if (!wasAborted) throw error;
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
  } finally {
    await release();
  }
}

export interface EnginePruneRequest extends ComposeOptions {
  readonly engine: Engine;
  readonly versionsPath: string;
  /** How many good versions before the present one keep their images. */
  readonly keep: number;
}

/** Removes old images of a project. The caller holds its lock. */
export async function pruneImages(request: EnginePruneRequest): Promise<Pruned> {
  if ((await chooseEngine(request)) === "compose") return pruneProject(request);
  // The commit only matters for names of images that are not built yet.
  const { project } = await loadStack(request, "0".repeat(12));
  return pruneStack({ ...request, project });
}
