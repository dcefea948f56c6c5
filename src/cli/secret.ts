import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { dropPreviousSecret, RotationError, rotateSecret } from "../config/rotate-secret.ts";
import { callService } from "../control/client.ts";
import type { StatusJson } from "../control/status.ts";
import { openTerminal } from "../platform/terminal/terminal.ts";
import { statePathOf } from "./ask-service.ts";
import { newCommand, refuse, type Surroundings } from "./command.ts";
import { rotationLines } from "./secret-text.ts";

interface Options {
  readonly envFile?: string;
  readonly stdin?: boolean;
  readonly show?: boolean;
  readonly force?: boolean;
}

/** `hotpush secret`: rotates the secret of the webhook in two steps, between which both are accepted. */
export function makeSecretCommand({ env, finish }: Surroundings): Command {
  const command = newCommand("secret", "Rotates the secret of the webhook without losing a push.", [
    "hotpush secret rotate          a new one; the old one is still accepted",
    "hotpush secret drop-previous   the old one is not accepted any more",
  ]);
  const envPath = [
    "--env-file <path>",
    "the file that the service reads (default: .env here, else that of REPO_PATH)",
  ] as const;
  const rotate = newCommand(
    "rotate",
    "Makes a new secret of 32 bytes in the .env file of the service, or in the file that its WEBHOOK_SECRET_FILE names, keeps the old one as WEBHOOK_SECRET_PREVIOUS, and says what to do next. The new one is shown on a terminal only.",
    ["hotpush secret rotate", "hotpush secret rotate --env-file /etc/hotpush.env"],
  )
    .summary("a new one, while the old one is still accepted")
    .option(...envPath)
    .option("--stdin", "the git host made the new one (GitLab, Pagure): read it from standard input")
    .option("--show", "show the new one where output is piped, too")
    .option("--force", "throw away a previous one that is there")
    .action(async (options: Options) => finish(await changing(() => runRotate(options, env))));
  const drop = newCommand(
    "drop-previous",
    "Takes the previous secret out of the .env file of the service, when it is safe: see hotpush status.",
    ["hotpush secret drop-previous", "hotpush secret drop-previous --force   without asking the service"],
  )
    .summary("the old one is not accepted any more")
    .option(...envPath)
    .option("--force", "whether it is safe or not")
    .action(async (options: Options) => finish(await changing(() => runDrop(options, env))));
  return command.addCommand(rotate).addCommand(drop);
}

async function changing(work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RotationError) return refuse(error.message);
    throw error;
  }
}

async function runRotate({ envFile, stdin, show, force }: Options, env: NodeJS.ProcessEnv): Promise<number> {
  const secrets = await askForSecrets(env);
  const host = secrets?.current.host ?? secrets?.previous?.host ?? null;
  if (!stdin && (host === "gitlab" || host === "pagure")) {
    return refuse(
      "This git host makes the secret itself. Make a new one there, and give it to: hotpush secret rotate --stdin",
    );
  }
  const given = stdin ? { secret: readFileSync(0, "utf8").trim() } : {};
  const { secret, secretPath } = rotateSecret(envFile ?? usualEnvFile(env), {
    ...given,
    isReplacingPrevious: force ?? false,
  });
  const terminal = openTerminal(process.stdout, env);
  const isShown = !stdin && (terminal.isInteractive || show === true);
  terminal.print(
    ...rotationLines({ envFile, secretPath, host, secret: isShown ? secret : null, isGiven: stdin ?? false }),
  );
  return 0;
}

async function runDrop({ envFile, force }: Options, env: NodeJS.ProcessEnv): Promise<number> {
  if (!force) {
    const secrets = await askForSecrets(env);
    const sure = "To drop it all the same: hotpush secret drop-previous --force";
    if (secrets === null) return refuse(`the service cannot be asked whether it is safe. ${sure}`);
    if (secrets.previous === null) {
      return refuse(
        `the service runs without a previous secret: restart it, if you have just rotated. ${sure}`,
      );
    }
    if (!secrets.canDropPrevious) return refuse(`${secrets.advice} ${sure}`);
  }
  const path = envFile ?? usualEnvFile(env);
  dropPreviousSecret(path);
  openTerminal(process.stdout, env).print(
    `The previous secret is gone from ${path}. Restart the service, so that it is not accepted any more.`,
  );
  return 0;
}

/** In the image the working directory has none: compose reads the one of the repository, and passes it on. */
function usualEnvFile({ REPO_PATH: repoPath }: NodeJS.ProcessEnv): string {
  return repoPath && !existsSync(".env") ? join(repoPath, ".env") : ".env";
}

/** What the service knows of its secrets, or null where it cannot be asked. */
async function askForSecrets(env: NodeJS.ProcessEnv): Promise<StatusJson["secrets"] | null> {
  try {
    return (await callService<StatusJson>(statePathOf(env), "GET", "/status")).secrets;
  } catch {
    return null;
  }
}
