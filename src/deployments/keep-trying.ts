import type { Log } from "../log.ts";
import { pause } from "./pause.ts";

const retryMs = 1_000;

/**
 * Does `attempt` again every second while the machine is too short of something for it: processes, memory, descriptors.
 *
 * @param options.what said in the log: what could not be done
 * @returns what `attempt` gave, or null where `signal` was aborted first
 * @throws whatever `attempt` throws that is no error of the system's
 */
export async function keepTrying<Result>(
  attempt: () => Promise<Result>,
  { what, signal, log }: { readonly what: string; readonly signal: AbortSignal; readonly log: Log },
): Promise<Result | null> {
  while (!signal.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).errno === undefined) throw error;
      log.error({ event: "system.short", err: error }, `${what}; trying again in 1 s`);
      await pause(retryMs, signal);
    }
  }
  return null;
}
