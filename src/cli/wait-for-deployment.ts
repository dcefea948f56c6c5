import { readEvents } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { isFinished } from "../deployments/states.ts";
import { refuse } from "./command.ts";
import { createProgressPrinter } from "./progress-printer.ts";
import type { ServiceAccess } from "./with-service.ts";

export interface WaitOptions {
  /** What was recorded, in a sentence. */
  readonly summary: string;
  readonly isDetached: boolean;
  readonly isJson: boolean;
}

/**
 * Shows a deployment that a command has just requested until it has ended; with `isDetached` it does not wait. Within a
 * deploy script it never waits, because the deployment runs only when that script has ended.
 *
 * @returns the exit code: 0 if the deployment succeeded or is not waited for, else 1
 */
export async function waitForDeployment(
  service: ServiceAccess,
  deployment: DeploymentJson,
  { summary, isDetached, isJson }: WaitOptions,
): Promise<number> {
  const { env, terminal } = service;
  const printJson = (value: DeploymentJson) => terminal.print(JSON.stringify({ deployment: value }));
  if (!isJson) terminal.print(summary);
  if (isDetached || env.DEPLOY_ID !== undefined) {
    if (isJson) printJson(deployment);
    return 0;
  }
  const followed = await follow(service, deployment.id, isJson ? "silent" : "text");
  if (followed.kind === "left") return followed.exitCode;
  if (isJson) printJson(followed.deployment);
  return followed.deployment.state === "succeeded" ? 0 : 1;
}

/** As after a signal: 128 and the number of SIGINT. */
const interruptedExitCode = 130;

/** Whether following ended with the deployment, or before it. */
export type Followed =
  | { readonly kind: "finished"; readonly deployment: DeploymentJson }
  | { readonly kind: "left"; readonly exitCode: number };

/**
 * Shows what a deployment prints and does until it has ended. Ctrl-C ends the display, not the deployment.
 *
 * @param id null: the deployment that runs, else the last that did
 * @param form `text` for a person, `events` for a program, `silent` to show nothing
 */
export async function follow(
  { statePath, terminal }: ServiceAccess,
  id: number | null,
  form: "text" | "events" | "silent",
): Promise<Followed> {
  const left = new AbortController();
  const leave = () => left.abort();
  process.once("SIGINT", leave).once("SIGTERM", leave);
  const printer = form === "text" ? createProgressPrinter(terminal) : null;
  let last: DeploymentJson | null = null;
  try {
    for await (const event of readEvents(statePath, { id, isFollowing: true, signal: left.signal })) {
      if (form === "events") terminal.print(JSON.stringify(event));
      printer?.print(event);
      if (event.event === "deployment") last = event.deployment;
    }
  } finally {
    printer?.end();
    process.removeListener("SIGINT", leave).removeListener("SIGTERM", leave);
  }
  if (last !== null && isFinished(last.state)) return { kind: "finished", deployment: last };
  return { kind: "left", exitCode: reportLeaving(last, left.signal.aborted) };
}

function reportLeaving(deployment: DeploymentJson | null, wasInterrupted: boolean): number {
  const again = `hotpush logs -f ${deployment?.id ?? ""}`.trimEnd();
  if (!wasInterrupted) return refuse(`the service went away. When it is back: ${again}`);
  const which = deployment === null ? "" : ` ${deployment.id}`;
  process.stderr.write(`Deployment${which} goes on. See it with: ${again}\n`);
  return interruptedExitCode;
}
