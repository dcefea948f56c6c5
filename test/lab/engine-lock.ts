import "../harness/environment.ts";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** With others, who only use the engine; or alone, to do to it what would harm them. */
export type Company = "together" | "alone";

/**
 * Who wants the engine alone holds the turnstile while it waits, so that it is not overtaken for ever. The locks go with
 * their holder: `read` ends when the test file's end of the pipe does, however that comes.
 */
const hold: Readonly<Record<Company, string>> = {
  together: 'exec 8>"$0.turnstile" 9>"$0"; flock 8; flock --shared 9; flock --unlock 8; echo held; read -r _',
  alone: 'exec 8>"$0.turnstile" 9>"$0"; flock 8; flock 9; echo held; read -r _',
};

/** Waits until this test file may use the engine in that company. Gives what lets the next one in. */
export async function takeEngine(company: Company): Promise<() => Promise<void>> {
  const path = join(tmpdir(), "hotpush-lab-engine.lock");
  const holder = spawn("bash", ["-c", hold[company], path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  return async () => {
    holder.stdin.end();
    await once(holder, "close");
  };
}
