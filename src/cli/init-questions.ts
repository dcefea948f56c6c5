import { parseAddress } from "../setup/address.ts";
import { type GitHost, gitHosts, isGitHost } from "../setup/git-host.ts";
import type { Questions } from "../setup/set-up.ts";
import { ask } from "./ask.ts";

/** Nobody is asked: what cannot be found out stays open, and can be said with an option later. */
export const takeDefaults: Questions = {
  askUrl: async () => null,
  askHost: async () => null,
  askService: async () => null,
};

export const personAtTerminal: Questions = {
  askUrl: () => {
    const question = `Where will your git host reach this server? Such as https://shop.example.org; empty for not yet known`;
    return ask<URL | null | "again">(question, "", (text) => {
      if (text === "") return "again";
      const url = parseAddress(text);
      if (url === null) tellWrong("That is no address.");
      return url;
    }).then((url) => (url === "again" ? null : url));
  },
  askHost: (name) => {
    const question = `Which git host is ${name}? One of ${gitHosts.join(", ")}`;
    return ask<GitHost>(question, "gitea", (text) => {
      if (isGitHost(text)) return text;
      tellWrong(`${text} is none of them.`);
      return null;
    });
  },
  askService: (names) => {
    const question = `Which service is the app that visitors reach? One of ${names.join(", ")}`;
    return ask<string>(question, names[0] ?? "", (text) => {
      if (names.includes(text)) return text;
      tellWrong(`${text} is none of them.`);
      return null;
    });
  },
};

function tellWrong(text: string): void {
  process.stdout.write(`${text}\n`);
}
