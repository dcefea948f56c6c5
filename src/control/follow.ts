import type { ServerResponse } from "node:http";
import type { Deployment } from "../deployments/deployment.ts";
import type { DeploymentEvent } from "../deployments/event-bus.ts";
import { findDeployment } from "../deployments/rows.ts";
import { isFinished } from "../deployments/states.ts";
import { createLineCutter, type LineCutter, stepOf } from "../runner/lines.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson } from "./deployment-json.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { drained } from "./log.ts";
import { type LogSnapshot, openLogSnapshot } from "./log-snapshot.ts";
import type { Reply } from "./reply.ts";
import type { Asked } from "./routes.ts";
import { createStepTeller, type StepTeller } from "./step-teller.ts";
import { createTeller, type Teller } from "./teller.ts";

/** How soon a change is seen that another instance made, to which nothing in this process points. */
const lookIntervalMs = 1_000;
/** What is held back for a moment, while what was printed before is still being told. */
const mostHeld = 10_000;

/**
 * Tells what a deployment has printed and done, and, unless `follow=false`, what it does from now on, when it happens.
 * The first event is the deployment as it is, the last one the deployment as it ended.
 */
export function followDeployment(context: FollowContext, { id, query }: Asked): Reply {
  const deployment = wantedDeployment(context.store, id);
  if (deployment === null) return notFound(id);
  const isFollowing = query.get("follow") !== "false";
  return {
    kind: "stream",
    type: "application/x-ndjson",
    write(response) {
      const reader = { context, response };
      follow(reader, deployment.id, isFollowing).catch((error) => giveUp(reader, error));
    },
  };
}

type FollowContext = Pick<ControlContext, "store" | "feed" | "statePath" | "log">;

interface Reader {
  readonly context: FollowContext;
  readonly response: ServerResponse;
}

interface Following extends Reader {
  readonly teller: Teller;
  readonly steps: StepTeller;
  readonly snapshot: LogSnapshot;
  readonly cutter: LineCutter;
  readonly stop: () => void;
  /** As it was told last. */
  told: Deployment;
  hasLiveLines: boolean;
  /** What happens while what was printed before is still being told; null: that is over. */
  held: DeploymentEvent[] | null;
}

async function follow(reader: Reader, id: number, isFollowing: boolean): Promise<void> {
  const following = startFollowing(reader, id);
  const { response, steps, snapshot, cutter } = following;
  tellDeployment(following);
  await replay(snapshot, response, cutter.push);
  if (isFinished(following.told.state) || !isFollowing) return conclude(following);
  const missed = following.held ?? [];
  following.held = null;
  steps.tellAll(following.told);
  for (const event of missed) if (!response.writableEnded) take(following, event);
}

/** In one turn of the loop: what is in the log now, and what comes after. */
function startFollowing({ context, response }: Reader, id: number): Following {
  const { store, feed, statePath } = context;
  const teller = createTeller(response);
  const steps = createStepTeller(store, teller.tell);
  const unfollow = feed.subscribe(id, (event) => {
    if (following.held === null) take(following, event);
    else if (following.held.length < mostHeld) following.held.push(event);
  });
  const timer = setInterval(() => lookAgain(following), lookIntervalMs).unref();
  const stop = () => {
    unfollow();
    clearInterval(timer);
  };
  response.on("close", stop);
  let stepLines = 0;
  const cutter = createLineCutter((line) => {
    if (stepOf(line) !== null) steps.tellAll(following.told, ++stepLines);
    teller.tell({ event: "line", line });
  });
  const snapshot = openLogSnapshot(statePath, id);
  const parts = { context, teller, steps, response, snapshot, cutter, stop };
  const told = findDeployment(store, id) as Deployment;
  const following: Following = { ...parts, told, hasLiveLines: false, held: [] };
  return following;
}

function tellDeployment({ teller, told }: Following): void {
  teller.tell({ event: "deployment", deployment: deploymentJson(told) });
}

function take(following: Following, event: DeploymentEvent): void {
  if (event.kind === "changed") look(following);
  else if (event.kind === "step") following.steps.tellAll(following.told);
  else {
    following.hasLiveLines = true;
    following.teller.tell({ event: "line", line: event.line });
  }
}

/** Nobody waits for this one: a fault of the disk costs the telling, and not the service. */
function lookAgain(following: Following): void {
  if (following.held !== null) return;
  try {
    look(following);
  } catch (error) {
    giveUp(following, error);
  }
}

function look(following: Following): void {
  const { context, told } = following;
  const now = findDeployment(context.store, told.id);
  if (now !== null && now.state === told.state && now.attempts === told.attempts) return;
  following.told = now ?? told;
  if (now === null || isFinished(now.state)) conclude(following);
  else tellDeployment(following);
}

function conclude(following: Following): void {
  const { teller, steps, cutter, stop, told, hasLiveLines } = following;
  stop();
  if (!hasLiveLines) cutter.finish();
  steps.tellAll(told);
  tellDeployment(following);
  teller.end();
}

function giveUp({ context, response }: Reader, error: unknown): void {
  context.log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
  response.destroy();
}

async function replay(
  snapshot: LogSnapshot,
  response: ServerResponse,
  push: (piece: Buffer) => void,
): Promise<void> {
  for await (const piece of snapshot.read()) {
    if (response.destroyed) return;
    push(piece);
    if (response.writableNeedDrain) await drained(response);
  }
}
