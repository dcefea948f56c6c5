import { existsSync } from "node:fs";
import { readSecretText, secretFault } from "../config/secret.ts";
import { webhookUrl } from "../config/values.ts";
import { type Branch, variables } from "../config.ts";
import { git } from "../init/git-checkout.ts";
import { withDotenv } from "../platform/env-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment as the service would have it: with `.env` of the working directory and, if that names no secret,
 * with `.env` of the repository around it.
 */
export async function sendingEnvironment(env: NodeJS.ProcessEnv, directory: string): Promise<Environment> {
  const near = withDotenv(env, directory);
  if (near.WEBHOOK_SECRET || near.WEBHOOK_SECRET_FILE) return near;
  const root = await git(directory, "rev-parse", "--show-toplevel");
  return root === null || root === directory ? near : withDotenv(env, root);
}

/** The secret to sign with, from the service's own settings; or the reason why there is none. */
export function secretToSend(env: Environment): { readonly secret: string } | { readonly fault: string } {
  const { text, fault } = readSecretText(env, "WEBHOOK_SECRET");
  if (!env.WEBHOOK_SECRET && !env.WEBHOOK_SECRET_FILE) {
    return {
      fault:
        "There is no WEBHOOK_SECRET: neither in the environment nor in .env here. Go to your project's directory, or write one with: hotpush init",
    };
  }
  const wrong = fault ?? secretFault("WEBHOOK_SECRET", text);
  return wrong === null ? { secret: text } : { fault: wrong };
}

/** The requested URL, else WEBHOOK_URL, else the service on this machine; null: no address. */
export function urlToSend(wanted: string | undefined, env: Environment): URL | null {
  const text = wanted ?? env.WEBHOOK_URL ?? `http://127.0.0.1:${env.WEBHOOK_PORT || "9000"}/webhook`;
  return webhookUrl(text);
}

/** The repository of a made-up push: REPO_PATH if it exists here, else the working directory. */
export function repositoryToSend(env: Environment, directory: string): string {
  return env.REPO_PATH && existsSync(env.REPO_PATH) ? env.REPO_PATH : directory;
}

/** The branch that BRANCH names, or null if it names none that is deployed. */
export function branchToSend(env: Environment): Branch | null {
  return variables.BRANCH.read(env.BRANCH?.trim() ?? "") || null;
}
