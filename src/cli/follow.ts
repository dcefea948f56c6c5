import { type EventsOptions, readEvents } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { isFinished } from "../deployments/states.ts";
import { openTerminal } from "../platform/terminal/terminal.ts";
import { refuse } from "./command.ts";
import { createStoryteller } from "./storyteller.ts";

/** As after a signal: 128 and the number of SIGINT. */
const interruptedExitCode = 130;

export interface FollowOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly statePath: string;
  readonly id: number | null;
  /** What becomes of it is shown: `text` for a person, `events` for a program, or nothing of it. */
  readonly form: "text" | "events" | "silent";
}

/** How following ended: with the deployment, or before it. */
export type Followed =
  | { readonly kind: "finished"; readonly deployment: DeploymentJson }
  | { readonly kind: "left"; readonly exitCode: number };

/** Shows what a deployment prints and does until it has ended. Ctrl-C ends the showing, not the deployment. */
export async function follow({ env, statePath, id, form }: FollowOptions): Promise<Followed> {
  const left = new AbortController();
  const leave = () => left.abort();
  process.once("SIGINT", leave).once("SIGTERM", leave);
  const terminal = openTerminal(process.stdout, env);
  const story = form === "text" ? createStoryteller(terminal) : null;
  let last: DeploymentJson | null = null;
  try {
    const options: EventsOptions = { id, isFollowing: true, signal: left.signal };
    for await (const event of readEvents(statePath, options)) {
      if (form === "events") terminal.print(JSON.stringify(event));
      story?.tell(event);
      if (event.event === "deployment") last = event.deployment;
    }
  } finally {
    story?.end();
    process.removeListener("SIGINT", leave).removeListener("SIGTERM", leave);
  }
  if (last !== null && isFinished(last.state)) return { kind: "finished", deployment: last };
  return { kind: "left", exitCode: sayLeft(last, left.signal.aborted) };
}

function sayLeft(deployment: DeploymentJson | null, wasAsked: boolean): number {
  const again = `hotpush logs -f ${deployment?.id ?? ""}`.trimEnd();
  if (wasAsked) {
    const which = deployment === null ? "" : ` ${deployment.id}`;
    process.stderr.write(`Deployment${which} goes on. See it with: ${again}\n`);
    return interruptedExitCode;
  }
  return refuse(`the service went away. When it is back: ${again}`);
}
