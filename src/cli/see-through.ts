import type { DeploymentJson } from "../control/deployment-json.ts";
import { openTerminal } from "../platform/terminal/terminal.ts";
import { follow } from "./follow.ts";

export interface SeeThroughOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly statePath: string;
  /** What was recorded, in a sentence. */
  readonly said: string;
  readonly isDetached: boolean;
  readonly isJson: boolean;
}

/**
 * Shows a deployment that a command has just asked for, until it has ended, unless it is not to be waited for. Within a
 * deploy script it never is: what was asked for runs when that script has ended.
 *
 * @returns the exit code: 0 where it succeeded or is not waited for, else 1
 */
export async function seeThrough(deployment: DeploymentJson, options: SeeThroughOptions): Promise<number> {
  const { env, statePath, said, isJson } = options;
  const { print } = openTerminal(process.stdout, env);
  if (!isJson) print(said);
  if (options.isDetached || env.DEPLOY_ID !== undefined) {
    if (isJson) print(JSON.stringify({ deployment }));
    return 0;
  }
  const followed = await follow({ env, statePath, id: deployment.id, form: isJson ? "silent" : "text" });
  if (followed.kind === "left") return followed.exitCode;
  if (isJson) print(JSON.stringify({ deployment: followed.deployment }));
  return followed.deployment.state === "succeeded" ? 0 : 1;
}
