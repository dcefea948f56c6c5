import "../harness/environment.ts";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Shared, for tests that only use the engine; shared with all but tests that make a server too, of which an engine
 * has only one; or alone, for tests that disturb others.
 */
export type Company = "together" | "one server" | "alone";

/**
 * A file that wants the engine alone holds the turnstile while it waits, so that others do not overtake it for ever. The
 * locks end with their holder: `read` returns when the test file's end of the pipe is closed.
 */
const share =
  'exec 8>"$0.turnstile" 9>"$0"; flock 8; flock --shared 9; flock --unlock 8; echo held; read -r _';
const hold: Readonly<Record<Company, string>> = {
  together: share,
  "one server": `exec 7>"$0.server"; flock 7; ${share}`,
  alone: 'exec 8>"$0.turnstile" 9>"$0"; flock 8; flock 9; echo held; read -r _',
};

/**
 * Waits until this test file may use the engine that way. If the run that started the file is killed, the file ends too: for
 * nobody, it would keep the engine from the next run for minutes.
 *
 * @returns a function that releases it
 */
export async function takeEngine(company: Company): Promise<() => Promise<void>> {
  const path = join(tmpdir(), "hotpush-lab-engine.lock");
  const startedBy = process.ppid;
  const isOrphan = () => process.env.NODE_TEST_CONTEXT !== undefined && process.ppid !== startedBy;
  const watch = setInterval(() => isOrphan() && process.exit(1), 500).unref();
  const holder = spawn("bash", ["-c", hold[company], path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  // If a hook fails, Node leaves out those that would release it. The lock ends with this process, which it must not keep alive.
  for (const handle of [holder, holder.stdin, holder.stdout] as { unref?(): void }[]) handle.unref?.();
  return async () => {
    clearInterval(watch);
    holder.stdin.end();
    await once(holder, "close");
  };
}
