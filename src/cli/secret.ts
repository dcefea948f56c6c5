import { readFileSync } from "node:fs";
import { Argument, type Command } from "commander";
import { dropPrevious, rotateSecret, type SecretOptions } from "#setup/secret";
import { type CommandContext, newCommand, print, projectOption } from "./command.ts";
import { accessService } from "./service-access.ts";

export const commands = { secret: makeSecretCommand };

interface SecretCommandOptions extends SecretOptions {
  readonly stdin?: boolean;
  readonly force?: boolean;
}

/** `hotpush secret`: rotates the secret of the webhook in two steps, between which both secrets are accepted. */
function makeSecretCommand({ env, finish }: CommandContext): Command {
  const description =
    "Rotate the secret of the webhook without losing a push, in the file of the project or in the .env file of the service. rotate makes a new one of 32 bytes, keeps the old one as WEBHOOK_SECRET_PREVIOUS, and prints what to do next; the new secret is shown on a terminal only. drop-previous removes the old one, if that is safe: see hotpush status.";
  return newCommand("secret", description, [
    "hotpush secret rotate          make a new one; the old one stays valid",
    "hotpush secret drop-previous   the old one is no longer accepted",
  ])
    .addArgument(new Argument("<step>", "first one, then the other").choices(["rotate", "drop-previous"]))
    .option("--stdin", "rotate: the git host made the new one (GitLab, Pagure): read it from standard input")
    .option("--force", "drop-previous: do not ask whether it is safe")
    .option(
      "--env-file <path>",
      "the file that the service reads (default: that of the project, else .env here)",
    )
    .addOption(projectOption("the project whose secret it is, if there are several"))
    .action(async (step: string, { stdin = false, force = false, ...whose }: SecretCommandOptions) => {
      const given = () => readFileSync(0, "utf8").trim();
      const ask = (project?: string) => askStatus(env, project);
      if (step === "rotate") print(...rotateSecret(whose, env, stdin ? given : null));
      else print(await dropPrevious(whose, env, force ? null : ask));
      finish(0);
    });
}

/** The working directory does not say which project: the file of another one may be changed. null: the service cannot be asked. */
function askStatus(env: NodeJS.ProcessEnv, project: string | undefined) {
  const { call } = accessService(env, { project, directory: null });
  return call("status", {}).catch(() => null);
}
