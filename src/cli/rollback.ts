import { resolve } from "node:path";
import type { Command } from "commander";
import { NotRunningError } from "../control/client.ts";
import type { RequestedJson } from "../control/requests.ts";
import { type CommandContext, newCommand, parser } from "./command.ts";
import { addWaitOptions, type WaitOptions, waitForDeployment } from "./follow.ts";
import { accessService, type ServiceAccess } from "./service-access.ts";

interface RollbackOptions extends WaitOptions {
  readonly directory?: string;
}

/** `hotpush rollback`: has the service roll back, and shows the output. Its exit code is 0 if the earlier version serves. */
export function makeRollbackCommand({ env, finish }: CommandContext): Command {
  const description =
    "Roll back to an earlier good version without a build: the previous one, or that of a deployment (by its number) or of a commit (by its first digits). The service runs this as a deployment of its own, when the running one has ended. Newer commits are not deployed until the next push.";
  const version = parser(
    (text) => (/^[0-9a-f]{1,64}$/i.test(text) ? text : null),
    "Neither a deployment's number nor a commit.",
  );
  const command = newCommand("rollback", description, [
    "hotpush rollback           the previous good version",
    "hotpush rollback 7         the version of deployment 7",
    "hotpush rollback 3f2c1a9   the version of this commit",
  ])
    .argument("[version]", "a deployment's number, or a commit", version)
    .option(
      "--directory <path>",
      "must be the service's repository, the default; for another: hotpush rollout --back",
    );
  return addWaitOptions(command).action(async (wanted: string | undefined, options: RollbackOptions) =>
    finish(await rollback(accessService(env, options), wanted, options)),
  );
}

async function rollback(
  service: ServiceAccess,
  version: string | undefined,
  { directory, ...options }: RollbackOptions,
): Promise<number> {
  const body = { version, directory: directory && resolve(directory) };
  const requested = await service.post<RequestedJson>("/rollback", body).catch((error: unknown) => {
    if (!(error instanceof NotRunningError) || error.isForbidden) throw error;
    throw new NotRunningError(`${error.message}. Without the service: hotpush rollout --back`, error);
  });
  const { id, commit, trigger } = requested.deployment;
  if (trigger === "rollback")
    return await waitForDeployment(service, requested, `Deployment ${id} goes back to ${commit}.`, options);
  const summary = `Deployment ${id} was still guarded. It fails now: the version before it gets the requests again.`;
  return await waitForDeployment(service, requested, summary, options, "failed");
}
