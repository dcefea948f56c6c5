import type { Start } from "#deployments/deployment";
import { type CommandEnding, isShortage, runCommand } from "#platform/run-command";
import { printable } from "#platform/terminal";
import type { Redactor } from "#redaction";
import type { ProjectScript } from "./script.ts";

/** Linux refuses a variable of 128 KiB. */
const longestValue = 64 * 1024;

type Printed = { readonly kind: "printed"; readonly values: Readonly<Record<string, string>> };

/**
 * Runs the commands of a project's secrets file, one after the other, as the user of its script. They get the environment of
 * every child and no input: nothing of a push, neither its names nor a file of the checkout by a relative path, reaches them.
 *
 * @returns what each printed, without the last line's end; or why the script cannot start
 */
export async function printSecrets(
  { secretCommands, environment: env, user, withSecrets }: ProjectScript,
  signal: AbortSignal,
  timeoutMs: number = 20_000,
): Promise<Printed | Extract<Start, { kind: "refused" | "try-again" }>> {
  const values: Record<string, string> = {};
  for (const [name, argv] of Object.entries(secretCommands)) {
    const running = runCommand({ argv, cwd: "/", env, user, timeoutMs, signal });
    const ending = await running.catch((error: unknown) => notStarted(error));
    if (ending.kind === "aborted") return { kind: "try-again", detail: `${argv[0]} was stopped.` };
    const fault = faultOf(ending, timeoutMs);
    if (fault !== null || ending.kind !== "exited") {
      const text = printable(
        withSecrets(values)
          .redactor()
          .text(fault ?? ending.kind),
      );
      const detail = `${name} of the secrets file has no value: ${printable(argv[0])} ${text}. Nothing was run. When the command works as the owner of the checkout, deploy again: hotpush deploy`;
      return { kind: "refused", problem: { code: "secret_unavailable", detail } };
    }
    values[name] = ending.output;
  }
  return { kind: "printed", values };
}

/** Of a program that may not be executed; a shortage of the machine passes. */
function notStarted(error: unknown): CommandEnding {
  if (isShortage(error)) throw error;
  return { kind: "exited", code: 126, output: "", lastLines: [(error as Error).message] };
}

/** The end of a sentence; null if there is a value. What it printed to its standard output may be part of one. */
function faultOf(ending: CommandEnding, timeoutMs: number): string | null {
  if (ending.kind === "not_found") return "is not installed";
  if (ending.kind !== "exited") return `did not end within ${timeoutMs / 1_000} s`;
  const { code, output, lastLines } = ending;
  const printed = output.split("\n");
  const complaint = lastLines.filter((line) => line.trim() !== "" && !printed.includes(line)).at(-1);
  if (code !== 0) return `ended with exit code ${code}: ${complaint ?? "it gave no reason"}`;
  if (output === "") return "printed nothing";
  if (output.includes("\0")) return "printed a zero byte, which no variable can hold";
  return Buffer.byteLength(output) > longestValue ? "printed more than 64 KiB" : null;
}

/** For output that may have secrets which are not known any more. */
export const hidesAll: Redactor = {
  text: () => "***",
  beginning: () => ({ shown: "", rest: "" }),
};
