import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { NotRunningError } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { type CommandContext, newCommand } from "./command.ts";
import { waitForDeployment } from "./wait-for-deployment.ts";
import { reportedUser, type ServiceAccess, withService } from "./with-service.ts";

interface RollbackOptions {
  readonly directory?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

/** `hotpush rollback`: has the service roll back, and shows the output. Its exit code is 0 if the earlier version serves. */
export function makeRollbackCommand({ env, finish }: CommandContext): Command {
  const description =
    "Roll back to an earlier good version without a build: the previous one, or that of a deployment (by its number) or of a commit (by its first digits). The service runs this as a deployment of its own, when the running one has ended. Newer commits are not deployed until the next push.";
  return newCommand("rollback", description, [
    "hotpush rollback           the previous good version",
    "hotpush rollback 7         the version of deployment 7",
    "hotpush rollback 3f2c1a9   the version of this commit",
  ])
    .argument("[version]", "a deployment's number, or a commit", version)
    .option(
      "--directory <path>",
      "must be the service's repository, the default; for another: hotpush rollout --back",
    )
    .option("--detach", "do not wait for its end; always so within a deploy.sh")
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (wanted: string | undefined, options: RollbackOptions) =>
      finish(await withService(env, (service) => rollback(service, wanted, options))),
    );
}

function version(text: string): string {
  if (/^[0-9a-f]{1,64}$/i.test(text)) return text;
  throw new InvalidArgumentError("Neither a deployment's number nor a commit.");
}

async function rollback(
  service: ServiceAccess,
  wanted: string | undefined,
  { directory, detach: isDetached = false, json: isJson = false }: RollbackOptions,
): Promise<number> {
  const to = directory === undefined ? undefined : resolve(directory);
  const body = { version: wanted, directory: to, ...reportedUser(service.env) };
  const recorded = service.call<{ deployment: DeploymentJson }>("POST", "/rollback", body);
  const { deployment } = await recorded.catch((error: unknown) => {
    if (!(error instanceof NotRunningError)) throw error;
    throw new NotRunningError(`${error.message}. Without the service: hotpush rollout --back`);
  });
  const summary = `Deployment ${deployment.id} goes back to ${deployment.commit}.`;
  return await waitForDeployment(service, deployment, { summary, isDetached, isJson });
}
