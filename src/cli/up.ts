import type { Command } from "commander";
import { parseHostedRepository } from "#config/git-hosts";
import { startAlone } from "#platform/run-command";
import { isSshDestination } from "#platform/ssh";
import { canAsk, confirm, prompt } from "#platform/terminal";
import { clone, isRemote } from "#setup/clone";
import { parsePublicUrl, parseRemoteUrl } from "#setup/project";
import { planUp, type UpOptions, up } from "#setup/up";
import { type CommandContext, newCommand, parser, print, projectOption } from "./command.ts";
import { connectScreen, hosted, tokenFileText } from "./connect.ts";
import { newProject, pageOption, urlParser } from "./init.ts";
import { saveServer } from "./run-elsewhere.ts";

export const commands = { up: makeUpCommand, clone: makeCloneCommand };

const remote = parser(
  (text) => (isRemote(text) ? text : null),
  "Not an address such as git@github.com:octo/shop.git.",
);

interface UpCommandOptions extends UpOptions {
  readonly tokenFile?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** `hotpush up`: from a bare server to a project that is served and pushed to, over ssh. */
function makeUpCommand({ env, finish }: CommandContext): Command {
  const description =
    "Set up a bare server (Debian or Ubuntu) and a project on it, from your own machine, over ssh: Docker, this Hotpush, a clone with a deploy key, the webhook, and the first deployment. Then ask app and webhook from here. Each command is printed before it runs. Run again, it goes on where it stopped. The token of the git host is used for this and stored nowhere.";
  return newCommand("up", description, [
    "hotpush up root@203.0.113.5   in a checkout of the project",
    "hotpush up root@203.0.113.5 --repository git@github.com:octo/shop.git",
  ])
    .argument(
      "<server>",
      "as ssh takes it: root@203.0.113.5, a name of its settings, ssh://ada@host:2222",
      parser((text) => (isSshDestination(text) ? text : null), "Not a server such as root@203.0.113.5."),
    )
    .option("--repository <address>", "what git clones (default: the remote of this checkout)", remote)
    .option("--api <address>", "the repository at its host, if the name of the host does not show it", hosted)
    .option("--url <address>", "where git host and visitors reach the project (default: asks)", urlParser)
    .addOption(pageOption())
    .addOption(projectOption(newProject))
    .option("--token-file <path>", tokenFileText)
    .option("--yes", "do not ask before Docker is installed")
    .option("--dry-run", "print the commands, and run none")
    .action(async (server: string, _options: UpCommandOptions, command: Command) => {
      const options = command.optsWithGlobals<UpCommandOptions>();
      const { yes = false, dryRun = false } = options;
      const screen = {
        ...connectScreen(env, options.tokenFile),
        // Its lines are commands, which must stay whole.
        say: (text: string) => print(text),
        mayDo: async (question: string) => yes || (canAsk() && (await confirm(question))),
        hasDone: async (what: string) =>
          canAsk() && (await prompt(`Press Enter when ${what}`, "", () => true)),
        saveServer: (address: string) => saveServer(env, address),
        openPage: (link: string) => openPage(link, env),
      };
      finish(await up(await planUp(server, options, env, askUrl), env, screen, dryRun));
    });
}

/** The link is for a person: it is printed on a terminal only, not into what a file may keep. */
async function openPage(link: string, env: NodeJS.ProcessEnv): Promise<void> {
  const isMac = process.platform === "darwin";
  const hasDisplay = isMac || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY);
  if (hasDisplay && (await startAlone([isMac ? "open" : "xdg-open", link], env)))
    print("Your browser opens the page. If it does not: hotpush open");
  else
    print(
      process.stdout.isTTY ? `The page, signed in once: ${link}` : "To sign in to the page: hotpush open",
    );
}

async function askUrl(name: string): Promise<URL | null> {
  if (!canAsk()) return null;
  print(`Where do your git host and visitors reach ${name}, such as https://shop.example.org?`);
  return await prompt<URL>("Address", "", parsePublicUrl);
}

interface CloneCommandOptions {
  readonly url: URL;
  readonly repository?: UpOptions["api"];
  readonly tokenFile?: string;
}

/** `hotpush clone`: a checkout that `init` can set up, read with a key that can do nothing else. */
function makeCloneCommand({ env, finish }: CommandContext): Command {
  const description =
    "Clone a repository with a deploy key of its own, which only this checkout has, which can only read, and which is added at the git host with a token that is used for this and stored nowhere. Without a token, it prints the key for you to add, and exits with 75. Run again, it goes on where it stopped.";
  return newCommand("clone", description, [
    "hotpush clone git@github.com:octo/shop.git /srv/shop --url shop.example.org",
  ])
    .argument("<remote>", "what git clones", remote)
    .argument("<directory>", "where to")
    .requiredOption("--url <address>", "where the git host will send pushes: it names the key", urlParser)
    .option("--repository <address>", "the repository at the git host (default: by the remote)", hosted)
    .option("--token-file <path>", tokenFileText)
    .action(async (address: string, directory: string, _options: CloneCommandOptions, command: Command) => {
      const options = command.optsWithGlobals<CloneCommandOptions>();
      const { url, repository } = options;
      const parsed = parseRemoteUrl(address);
      const known = parsed && parseHostedRepository(`${parsed.origin}/${parsed.path}`);
      const wanted = { remote: address, directory, url, repository: repository ?? known };
      finish(await clone(wanted, connectScreen(env, options.tokenFile)));
    });
}
