import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { callService, NotRunningError } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { asking, reportedUser } from "./ask-service.ts";
import { newCommand, type Surroundings } from "./command.ts";
import { seeThrough } from "./see-through.ts";

interface Options {
  readonly directory?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

/** `hotpush rollback`: has the service roll back, and shows what it prints. Its exit code is 0 where the earlier version serves. */
export function makeRollbackCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Brings an earlier good version back by a roll-out without a build: the previous one, or that of a deployment (by its number) or of a commit (by its first digits). The service runs it as a deployment of its own, when the one that runs has ended, and what was pushed meanwhile stays away until the next push.";
  return newCommand("rollback", summary, [
    "hotpush rollback           the previous good version",
    "hotpush rollback 7         that of deployment 7",
    "hotpush rollback 3f2c1a9   that of this commit",
  ])
    .argument("[version]", "a deployment's number, or a commit", version)
    .option(
      "--directory <path>",
      "that of the service, which is the default; another: hotpush rollout --back",
    )
    .option("--detach", "do not wait for its end; so it is always within a deploy.sh, whose end it waits for")
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (wanted: string | undefined, options: Options) =>
      finish(await asking(env, (statePath) => rollBack(statePath, wanted, options, env))),
    );
}

function version(text: string): string {
  if (/^[0-9a-f]{1,64}$/i.test(text)) return text;
  throw new InvalidArgumentError("One deployment's number, or one commit.");
}

async function rollBack(
  statePath: string,
  wanted: string | undefined,
  { directory, detach = false, json = false }: Options,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const to = directory === undefined ? undefined : resolve(directory);
  const body = { version: wanted, directory: to, ...reportedUser(env) };
  const { deployment } = await callService<{ deployment: DeploymentJson }>(
    statePath,
    "POST",
    "/rollback",
    body,
  ).catch((error: unknown) => {
    if (!(error instanceof NotRunningError)) throw error;
    throw new NotRunningError(`${error.message}. Without the service: hotpush rollout --back`);
  });
  const said = `Deployment ${deployment.id} goes back to ${deployment.commit}.`;
  return await seeThrough(deployment, { env, statePath, said, isDetached: detach, isJson: json });
}
