import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { type HostedRepository, parseHostedRepository } from "#config/git-hosts";
import { makeSecret, readNamedFile, type Secret } from "#config/secret";
import { outputOf } from "#platform/run-command";
import { canAsk, promptSecret } from "#platform/terminal";
import { CommandError } from "#problems";
import { type ConnectOptions, type ConnectScreen, connect } from "#setup/connect";
import { type CommandContext, newCommand, parser, print, projectOption, say } from "./command.ts";
import { printWebhookForm } from "./init.ts";

export const commands = { connect: makeConnectCommand };

export const tokenFileText = "a file with the token, mode 0600; -: from standard input";
export const hosted = parser(
  parseHostedRepository,
  "Not an address such as https://github.com/octo/shop or gitea+https://git.example.org/octo/shop.",
);

interface Options extends ConnectOptions {
  readonly tokenFile?: string;
}

/** `hotpush connect`: the webhook and the deploy key at the git host, by its API. */
function makeConnectCommand({ env, finish }: CommandContext): Command {
  const description =
    "Make the webhook of this project at its git host (GitHub, Gitea, Forgejo, GitLab, Bitbucket Cloud), and a deploy key with which the checkout is read, if its remote is an ssh address; then test them. Run again, it repairs both. The token is used for this and stored nowhere: that of --token-file, else of the program gh, else the one that you type. Without a token, it prints the values of the webhook's form, and exits with 75; so it does if the webhook is there and pushes do not arrive yet.";
  return newCommand("connect", description, [
    "hotpush connect   asks for the token",
    "hotpush connect --repository gitea+https://git.example.org/octo/shop",
  ])
    .option("--token-file <path>", tokenFileText)
    .option(
      "--repository <address>",
      "at the git host (default: COMMIT_STATUS_URL, else by the remote)",
      hosted,
    )
    .addOption(projectOption())
    .option("--no-key", "make no deploy key: git's access to the remote stays as it is")
    .option("--remove", "take the webhook and the deploy key away")
    .addOption(
      new Option("--redeliver", "only have the host send what failed again (GitHub, GitLab)").conflicts(
        "remove",
      ),
    )
    .action(async (_options: Options, command: Command) => {
      const options = command.optsWithGlobals<Options>();
      finish(await connect(options, env, connectScreen(env, options.tokenFile)));
    });
}

/** @param tokenFile null: none, so the token is that of gh, or a person is asked */
export function connectScreen(env: NodeJS.ProcessEnv, tokenFile?: string): ConnectScreen {
  return {
    say,
    async readToken(repository, needs) {
      const found = tokenFile === undefined ? await tokenOfGh(repository, env) : readTokenFile(tokenFile);
      if (found !== null && tokenFile === undefined) say("The token is that of the program gh.");
      if (found === null && !canAsk()) return null;
      if (found === null) say(`The token needs (${repository.url.host}) ${needs}.`);
      const text = found ?? (await promptSecret("Token"));
      return text === "" ? null : checkedToken(text);
    },
    showForm: printWebhookForm,
    showKey: print,
  };
}

function readTokenFile(path: string): string {
  const text = path === "-" ? readFileSync(0, "utf8") : readNamedFile("--token-file", path, true);
  if (typeof text !== "string") throw new CommandError(text.fault);
  return text.trim();
}

/** null: it is not installed, or not signed in there. */
async function tokenOfGh({ host, url }: HostedRepository, env: NodeJS.ProcessEnv): Promise<string | null> {
  if (host !== "github") return null;
  return (await outputOf(["gh", "auth", "token", "--hostname", url.hostname], { env }))?.trim() || null;
}

/** A header cannot have other characters. */
function checkedToken(text: string): Secret {
  if (/^[\x21-\x7e]{8,}$/.test(text)) return makeSecret(text);
  throw new CommandError("That is not one token on one line. Copy it again, as the git host shows it once.");
}
