import { createInterface } from "node:readline/promises";
import { type GitHost, gitHosts, isGitHost } from "../init/git-host.ts";
import type { Questions } from "../init/plan-setup.ts";
import { parsePublicUrl } from "../init/webhook-address.ts";
import { CommandError } from "../problems.ts";
import { print } from "./command.ts";

/** Asks nothing: what cannot be detected stays open, and can be given as an option later. */
export const takeDefaults: Questions = {
  askUrl: async () => null,
  askHost: async () => null,
  askService: async () => null,
};

export const personAtTerminal: Questions = {
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
  askService: (names) => {
    print("Which service is the app that visitors reach? One of:", `  ${names.join(" ")}`);
    return prompt<string>("Service", names[0] ?? "", (text) =>
      names.includes(text) ? text : noneOfThem(text),
    );
  },
};

function noneOfThem(text: string): null {
  print(`${text} is none of them.`);
  return null;
}

/** Whether a person at a terminal can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
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
    return await terminal.question(question, { signal: left.signal });
  } catch (error) {
    if (!left.signal.aborted) throw error;
    process.stdout.write("\n");
    throw new CommandError("Nothing was written.");
  } finally {
    terminal.close();
  }
}
