import type { Container } from "./container.ts";
import { type Engine, EngineRefusal, getJson } from "./engine.ts";

interface Stats {
  readonly memory_stats?: {
    readonly usage?: number;
    readonly stats?: { readonly inactive_file?: number; readonly total_inactive_file?: number };
  };
}

/**
 * The memory that containers hold, as `docker stats` counts it: without files that the kernel only caches. A container
 * that does not run, or whose memory is not measured, holds none.
 */
export async function memoryOf(engine: Engine, containers: readonly Container[]): Promise<number> {
  const bytes = await Promise.all(containers.map(({ id }) => memoryOfOne(engine, id)));
  return bytes.reduce((sum, one) => sum + one, 0);
}

async function memoryOfOne(engine: Engine, id: string): Promise<number> {
  try {
    const path = `/containers/${id}/stats?stream=false&one-shot=true`;
    const { memory_stats: memory = {} } = await getJson<Stats>(engine, path);
    const { inactive_file, total_inactive_file } = memory.stats ?? {};
    return Math.max(0, (memory.usage ?? 0) - (inactive_file ?? total_inactive_file ?? 0));
  } catch (error) {
    if (error instanceof EngineRefusal) return 0;
    throw error;
  }
}
