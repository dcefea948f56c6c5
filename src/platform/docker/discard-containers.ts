import { type Container, removeContainer, stopContainer } from "./container.ts";
import { type Engine, EngineRefusal } from "./engine.ts";

/** A container that is still there, and why the engine refused to take it away. */
export interface Kept {
  readonly container: Container;
  readonly reason: string;
}

/**
 * Stops and removes containers, all at once.
 *
 * @param longestGraceS - the most seconds between SIGTERM and SIGKILL, where a container's own stop grace period is longer
 * @returns those that the engine refused to stop or to remove (a mount that is busy, for example)
 * @throws ProblemError `docker_unreachable`
 */
export async function discardContainers(
  engine: Engine,
  containers: readonly Container[],
  longestGraceS: number,
): Promise<readonly Kept[]> {
  const kept = await Promise.all(
    containers.map((container) => discardContainer(engine, container, longestGraceS)),
  );
  return kept.filter((one) => one !== null);
}

async function discardContainer(
  engine: Engine,
  container: Container,
  longestGraceS: number,
): Promise<Kept | null> {
  try {
    await stopContainer(engine, container, longestGraceS);
    await removeContainer(engine, container.id);
    return null;
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    return { container, reason: error.problem.detail };
  }
}
