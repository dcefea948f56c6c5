import type { ServerResponse } from "node:http";
import type { Deployment } from "../deployments/deployment.ts";
import type { FeedEvent } from "../deployments/feed.ts";
import { findDeployment } from "../deployments/record.ts";
import { isFinished } from "../deployments/states.ts";
import { createLineCutter, stepOf } from "../runner/lines.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson } from "./deployment-json.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { drained } from "./log.ts";
import { type LogSnapshot, openLogSnapshot } from "./log-snapshot.ts";
import type { Reply } from "./reply.ts";
import type { Asked } from "./routes.ts";
import { createStepTeller } from "./step-teller.ts";
import { createTeller } from "./teller.ts";

/** How soon a change is seen that another instance made, to which nothing in this process points. */
const lookIntervalMs = 1_000;
/** What is held back for a moment, while what was printed before is still being told. */
const mostHeld = 10_000;

/**
 * Tells what a deployment has printed and done, and, unless `follow=false`, what it does from now on, when it happens.
 * The first event is the deployment as it is, the last one the deployment as it ended.
 */
export function followDeployment(context: ControlContext, { id, query }: Asked): Reply {
  const deployment = wantedDeployment(context.store, id);
  if (deployment === null) return notFound(id);
  const isFollowing = query.get("follow") !== "false";
  return {
    kind: "stream",
    type: "application/x-ndjson",
    write(response) {
      follow(context, deployment.id, isFollowing, response).catch((error) => {
        context.log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
        response.destroy();
      });
    },
  };
}

async function follow(
  { store, feed, statePath, log }: ControlContext,
  id: number,
  isFollowing: boolean,
  response: ServerResponse,
): Promise<void> {
  const teller = createTeller(response);
  const steps = createStepTeller(store, teller.tell);
  let told = findDeployment(store, id) as Deployment;
  let hasLiveLines = false;
  let held: FeedEvent[] | null = [];
  // In one turn of the loop: what is in the log now, and what comes after.
  const unfollow = feed.follow(id, (event) => {
    if (held === null) take(event);
    else if (held.length < mostHeld) held.push(event);
  });
  const snapshot = openLogSnapshot(statePath, id);
  const timer = setInterval(() => {
    if (held === null) look();
  }, lookIntervalMs).unref();
  response.on("close", stop);
  let stepLines = 0;
  const cutter = createLineCutter((line) => {
    if (stepOf(line) !== null) steps.tellAll(told, ++stepLines);
    teller.tell({ event: "line", line });
  });

  function stop(): void {
    unfollow();
    clearInterval(timer);
  }

  function take(event: FeedEvent): void {
    if (event.kind === "changed") look();
    else if (event.kind === "step") steps.tellAll(told);
    else {
      hasLiveLines = true;
      teller.tell({ event: "line", line: event.line });
    }
  }

  /** Nobody waits for this: a fault of the disk costs the telling, not the service. */
  function look(): void {
    try {
      tellState();
    } catch (error) {
      log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
      response.destroy();
    }
  }

  function tellState(): void {
    const now = findDeployment(store, id);
    if (now !== null && now.state === told.state && now.attempts === told.attempts) return;
    if (now !== null) told = now;
    if (now === null || isFinished(now.state)) conclude();
    else teller.tell({ event: "deployment", deployment: deploymentJson(told) });
  }

  function conclude(): void {
    stop();
    if (!hasLiveLines) cutter.finish();
    steps.tellAll(told);
    teller.tell({ event: "deployment", deployment: deploymentJson(told) });
    teller.end();
  }

  teller.tell({ event: "deployment", deployment: deploymentJson(told) });
  await replay(snapshot, response, cutter.push);
  if (isFinished(told.state) || !isFollowing) return conclude();
  const missed = held;
  held = null;
  steps.tellAll(told);
  for (const event of missed) if (!response.writableEnded) take(event);
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
