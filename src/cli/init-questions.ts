import { createInterface } from "node:readline/promises";
import { type GitHost, gitHosts, isGitHost } from "../init/git-host.ts";
import type { QuestionsOnMachine } from "../init/on-machine/plan-on-machine.ts";
import type { PlannedFile } from "../init/planned-file.ts";
import type { UpstreamQuestion } from "../init/upstreams/questions.ts";
import type { UpstreamOptions } from "../init/upstreams/upstream.ts";
import { parsePublicUrl } from "../init/webhook-address.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { cleaned, uncleaned } from "../platform/terminal/output.ts";
import { CommandError } from "../problems.ts";
import { print, refuse } from "./command.ts";

/** Asks nothing: what cannot be detected stays open, and can be given as an option later. */
export const takeDefaults: QuestionsOnMachine = {
  askUrl: async () => null,
  askHost: async () => null,
  askUpstream: null,
};

export const personAtTerminal: QuestionsOnMachine = {
  askUrl: async () => {
    print(
      "Where will your git host reach this server, such as https://shop.example.org?",
      "(Press Enter if you do not know yet: you can set it later.)",
    );
    const answer = await prompt<{ readonly url: URL | null }>("Address", "", (text) => {
      const url = parsePublicUrl(text);
      if (url === null && text !== "") print("That is not an address.");
      return url === null && text !== "" ? null : { url };
    });
    return answer.url;
  },
  askHost: (name) => {
    print(`Which git host is ${name}? One of:`, `  ${gitHosts.join(" ")}`);
    return prompt<GitHost>("Git host", "gitea", (text) => (isGitHost(text) ? text : noneOfThem(text)));
  },
  askUpstream,
};

/** Asks a question about the services of a project. */
async function askUpstream({ lines, prompt: question, fallback, read }: UpstreamQuestion) {
  print(...lines.map((line) => wrapFor(process.stdout, line)));
  return await prompt<UpstreamOptions>(question, fallback, (text) => {
    const answer = read(text);
    if (typeof answer !== "string") return answer;
    print(wrapFor(process.stdout, answer));
    return null;
  });
}

function noneOfThem(text: string): null {
  print(`${text} is none of them.`);
  return null;
}

/** Whether a person at a terminal can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/** Whether the files may be changed: new ones need no question, existing ones are changed only if the person agrees. */
export async function mayChange(files: readonly PlannedFile[], isAgreed: boolean): Promise<boolean> {
  const changed = files.filter(({ state }) => state === "changed");
  // Added lines take nothing away.
  if (isAgreed || changed.every(({ before, text }) => isOnlyAdded(before ?? "", text))) return true;
  const names = changed.map(({ name }) => name).join(", ");
  if (!canAsk()) {
    refuse(`${names} would be changed as shown. Nothing was written; to agree: hotpush init --yes`);
    return false;
  }
  if (await confirm(`Change ${names} as shown?`)) return true;
  refuse("Nothing was written.");
  return false;
}

function isOnlyAdded(before: string, text: string): boolean {
  return text.startsWith(before.replace(/\n*$/, ""));
}

/** Asks for yes or no; an empty answer is no. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await readAnswer(`${question} [y/N]: `)).trim());
}

/**
 * Asks until `read` accepts the answer; an empty one is `fallback`.
 *
 * @throws CommandError on Ctrl-C and at the end of the input
 */
async function prompt<Value>(
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
