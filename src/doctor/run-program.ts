import { type Argv, runCommand } from "../platform/run-command.ts";

/** What became of a program. `lines` are the last of both its outputs; `code` is null where it took too long. */
export type Ran =
  | { readonly kind: "ended"; readonly code: number | null; readonly output: string; readonly lines: string }
  | { readonly kind: "missing" };

/** What a program is run with; the time-out is 10 s where none is given. */
export interface RunOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs?: number;
  readonly input?: string;
}

const usualTimeoutMs = 10_000;

/** Runs a program to its end, or until it has taken too long: then its whole process group is killed. */
export async function runProgram(argv: Argv, options: RunOptions): Promise<Ran> {
  const { env, input, timeoutMs = usualTimeoutMs } = options;
  const ending = await runCommand({ argv, env, timeoutMs, ...(input === undefined ? {} : { input }) });
  if (ending.kind === "not_found") return { kind: "missing" };
  const lines = ending.lastLines.join("\n");
  return ending.kind === "exited"
    ? { kind: "ended", code: ending.code, output: ending.output, lines }
    : { kind: "ended", code: null, output: "", lines };
}

/** The standard output of a program that has ended well, without white space at its ends, else null. */
export async function outputOf(argv: Argv, options: RunOptions): Promise<string | null> {
  const ran = await runProgram(argv, options);
  return ran.kind === "ended" && ran.code === 0 ? ran.output.trim() : null;
}
