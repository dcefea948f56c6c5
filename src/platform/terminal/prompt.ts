import { createInterface } from "node:readline/promises";
import { CommandError } from "#problems";
import { cleaned, uncleaned } from "./output.ts";

/** Whether a person at a terminal can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/** Asks for yes or no; an empty answer is no. @throws as `prompt` */
export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await readAnswer(`${question} [y/N]: `)).trim());
}

/**
 * Asks until `read` accepts the answer; an empty one is `proposal`.
 *
 * @throws CommandError on Ctrl-C and at the end of the input
 */
export async function prompt<Value>(
  question: string,
  proposal: string,
  read: (text: string) => Value | null,
): Promise<Value> {
  for (;;) {
    const shown = proposal === "" ? "" : ` [${proposal}]`;
    const value = read((await readAnswer(`${question}${shown}: `)).trim() || proposal);
    if (value !== null) return value;
  }
}

async function readAnswer(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const left = new AbortController();
  terminal.once("SIGINT", () => left.abort());
  terminal.once("close", () => left.abort());
  try {
    const ask = () => terminal.question(cleaned(question), { signal: left.signal });
    return await uncleaned(process.stdout, ask);
  } catch (error) {
    if (!left.signal.aborted) throw error;
    process.stdout.write("\n");
    throw new CommandError("Nothing was written.");
  } finally {
    terminal.close();
  }
}
