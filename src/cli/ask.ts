import { createInterface } from "node:readline/promises";

/** Whether somebody sits at a terminal who can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/** Thrown where the person ends the questions (Ctrl-C, Ctrl-D): nothing more is to be done. */
export class LeftError extends Error {
  override readonly name = "LeftError";
}

/**
 * Asks until `read` takes the answer; an empty one is `fallback`.
 *
 * @throws LeftError on Ctrl-C and at the end of the input
 */
export async function ask<Value>(
  question: string,
  fallback: string,
  read: (text: string) => Value | null,
): Promise<Value> {
  for (;;) {
    const shown = fallback === "" ? "" : ` [${fallback}]`;
    const text = (await readAnswer(`${question}${shown}: `)).trim() || fallback;
    const value = read(text);
    if (value !== null) return value;
  }
}

/** Asks for yes or no; an empty answer is no. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await readAnswer(`${question} [y/N]: `)).trim());
}

async function readAnswer(prompt: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const left = new AbortController();
  terminal.once("SIGINT", () => left.abort());
  terminal.once("close", () => left.abort());
  try {
    return await terminal.question(prompt, { signal: left.signal });
  } catch (error) {
    if (!left.signal.aborted) throw error;
    process.stdout.write("\n");
    throw new LeftError("The questions were left.");
  } finally {
    terminal.close();
  }
}
