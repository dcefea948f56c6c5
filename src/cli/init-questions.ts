import { type GitHost, gitHosts, isGitHost } from "../init/git-host.ts";
import type { Questions } from "../init/plan-setup.ts";
import { parsePublicUrl } from "../init/webhook-address.ts";
import { ask } from "./ask.ts";
import { say } from "./say.ts";

/** Nobody is asked: what cannot be found out stays open, and can be said with an option later. */
export const takeDefaults: Questions = {
  askUrl: async () => null,
  askHost: async () => null,
  askService: async () => null,
};

export const personAtTerminal: Questions = {
  askUrl: async () => {
    say("Where will your git host reach this server, such as https://shop.example.org?");
    say("(Enter where that is not known yet: it can be said later.)");
    const answer = await ask<{ readonly url: URL | null }>("Address", "", (text) => {
      const url = parsePublicUrl(text);
      if (url === null && text !== "") say("That is no address.");
      return url === null && text !== "" ? null : { url };
    });
    return answer.url;
  },
  askHost: (name) => {
    say(`Which git host is ${name}? One of:`);
    say(`  ${gitHosts.join(" ")}`);
    return ask<GitHost>("Git host", "gitea", (text) => {
      if (isGitHost(text)) return text;
      say(`${text} is none of them.`);
      return null;
    });
  },
  askService: (names) => {
    say("Which service is the app that visitors reach? One of:");
    say(`  ${names.join(" ")}`);
    return ask<string>("Service", names[0] ?? "", (text) => {
      if (names.includes(text)) return text;
      say(`${text} is none of them.`);
      return null;
    });
  },
};
