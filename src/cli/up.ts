import type { Command } from "commander";
import { gitHostOf, parseHostedRepository } from "#config/git-hosts";
import { parseGitRemoteUrl } from "#platform/git";
import { outputOf, startAlone } from "#platform/run-command";
import { isSshDestination } from "#platform/ssh";
import { canAsk, prompt } from "#platform/terminal";
import { CommandError } from "#problems";
import { clone, isRemote } from "#setup/clone";
import { repositoryOf } from "#setup/connect";
import { chooseProjectName, parsePublicUrl, parseRemoteUrl, readRemoteUrl } from "#setup/project";
import { type UpPlan, up } from "#setup/up";
import { type CommandContext, isAgreed, newCommand, parser, print } from "./command.ts";
import { connectScreen, hosted, tokenFileText } from "./connect.ts";
import { newProjectOption, pageOption, urlParser } from "./init.ts";
import { saveServer } from "./run-elsewhere.ts";

export const commands = { up: makeUpCommand, clone: makeCloneCommand };

const remote = parser(
  (text) => (isRemote(text) ? text : null),
  "Not an address such as git@github.com:octo/shop.git.",
);

interface UpOptions {
  readonly repository?: string;
  readonly api?: UpPlan["repository"];
  readonly url?: URL;
  readonly project?: string;
  readonly page?: URL;
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
    .addOption(newProjectOption())
    .option("--token-file <path>", tokenFileText)
    .option("--yes", "do not ask before Docker is installed")
    .option("--dry-run", "print the commands, and run none")
    .action(async (server: string, _options: UpOptions, command: Command) => {
      const options = command.optsWithGlobals<UpOptions>();
      const { yes = false, dryRun = false } = options;
      const screen = {
        ...connectScreen(env, options.tokenFile),
        // Its lines are commands, which must stay whole.
        say: (text: string) => print(text),
        mayDo: async (what: string) => yes || (await isAgreed(what)),
        hasDone: async (what: string) =>
          canAsk() && (await prompt(`Press Enter when ${what}`, "", () => true)),
        saveServer: (address: string) => saveServer(env, address),
        openPage: (link: string) => openPage(link, env),
      };
      finish(await up(await planUp(server, options, env), env, screen, dryRun));
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

async function planUp(server: string, options: UpOptions, env: NodeJS.ProcessEnv): Promise<UpPlan> {
  const given = options.repository ?? (await readRemoteUrl(process.cwd()));
  if (given === null || !isRemote(given))
    throw new CommandError("Say which repository: --repository git@github.com:octo/shop.git");
  // A page's address is fine too, where everybody knows that of its ssh.
  const known = parseHostedRepository(given);
  const address = known === null ? given : `git@${known.url.host}:${known.url.pathname.slice(1)}.git`;
  const parsed = parseRemoteUrl(address);
  if (parsed === null) throw new CommandError(`${address} does not name a repository.`);
  const isNew = { known: null, former: null, others: new Map<string, string>() };
  const name = chooseProjectName({ path: parsed.path, given: options.project ?? null, ...isNew });
  return {
    server,
    remote: address,
    repository: options.api ?? repositoryOf(parsed, gitHostOf(parsed)),
    name,
    url: options.url ?? (await askUrl(name)),
    page: options.page ?? null,
    gitServer: await readGitServer(address, env),
  };
}

async function askUrl(name: string): Promise<URL> {
  if (!canAsk()) throw new CommandError("Say where the project is reached: --url https://shop.example.org");
  print(`Where do your git host and visitors reach ${name}, such as https://shop.example.org?`);
  return await prompt<URL>("Address", "", parsePublicUrl);
}

/** What this machine knows of the git host, so that the server need not believe whoever answers there first. */
async function readGitServer(address: string, env: NodeJS.ProcessEnv): Promise<UpPlan["gitServer"]> {
  const { scheme, host, port, user } = parseGitRemoteUrl(address);
  if (scheme !== "ssh" || host === null) return { name: "", keys: "" };
  const name = port === null || port === 22 ? host : `[${host}]:${port}`;
  const settings = (await outputOf(["ssh", "-G", "--", host], { env })) ?? "";
  const settingOf = settings.matchAll(/^(?:user|global)knownhostsfile (.*)$/gm);
  const files = [...settingOf].flatMap(([, text = ""]) => text.split(" "));
  const paths = files.map((file) => file.replace(/^~(?=\/)/, env.HOME ?? "~"));
  const find = (path: string) => outputOf(["ssh-keygen", "-F", name, "-f", path], { env });
  const found = (await Promise.all(paths.map(find))).join("\n");
  const keys = found.match(/^[^#@\s].*$/gm);
  if (keys !== null) return { name, keys: `${keys.join("\n")}\n` };
  const login = `ssh -T ${port === null ? "" : `-p ${port} `}${user ?? "git"}@${host}`;
  throw new CommandError(
    `This machine does not know the key of ${host}, so the server could not either. Compare the fingerprint that this shows with the one that the git host publishes, and run this again: ${login}`,
  );
}

interface CloneCommandOptions {
  readonly url: URL;
  readonly repository?: UpPlan["repository"];
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
