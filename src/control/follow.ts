import type { ServerResponse } from "node:http";
import { type Deployment, findDeployment } from "../deployments/deployment.ts";
import { type DeploymentEvent, listSteps } from "../deployments/progress.ts";
import { isFinished } from "../deployments/states.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { createLineCutter, type LineCutter, stepOf } from "../runner/lines.ts";
import { type ControlEvent, deploymentJson, stepJson } from "./deployment-json.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { type LogSnapshot, openLogSnapshot, sendSnapshot } from "./log.ts";
import type { ControlContext, ControlReply, ControlRequest } from "./route.ts";

/** How soon a change by another instance is noticed, which no event in this process announces. */
const lookIntervalMs = 1_000;
/** Events held back while the log so far is still being sent; later ones are in the log as well. */
const mostHeld = 10_000;

/**
 * Sends what a deployment has printed and done and, unless `follow=false`, what it does from now on, at once. The first
 * event is the deployment as it is, the last one the deployment as it ended.
 */
export function followDeployment(context: FollowContext, { id, query }: ControlRequest): ControlReply {
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

type FollowContext = Pick<ControlContext, "store" | "events" | "logStatePath" | "log">;

interface Reader {
  readonly context: FollowContext;
  readonly response: ServerResponse;
}

interface Following extends Reader {
  readonly write: WriteEvent;
  readonly writeSteps: StepWriter;
  readonly snapshot: LogSnapshot;
  readonly cutter: LineCutter;
  readonly stop: () => void;
  /** The deployment as it was sent last. */
  sent: Deployment;
  hasLiveLines: boolean;
  /** Events that came while the log so far was being sent; null once it was sent. */
  held: DeploymentEvent[] | null;
}

async function follow(reader: Reader, id: number, isFollowing: boolean): Promise<void> {
  const following = startFollowing(reader, id);
  const { response, writeSteps, snapshot, cutter } = following;
  sendDeployment(following);
  await sendSnapshot(snapshot, response, cutter.push);
  if (isFinished(following.sent.state) || !isFollowing) return conclude(following);
  const missed = following.held ?? [];
  following.held = null;
  // A step that began meanwhile has its place among the lines that came meanwhile.
  const known = listSteps(reader.context.store, following.sent).length;
  let begun = known - missed.filter(({ kind }) => kind === "step").length;
  writeSteps(following.sent, begun);
  for (const event of missed) {
    if (response.writableEnded) return;
    if (event.kind === "step") writeSteps(following.sent, ++begun);
    else take(following, event);
  }
}

/** Subscribes and opens the log in one turn of the event loop, so that no line is lost or sent twice. */
function startFollowing({ context, response }: Reader, id: number): Following {
  const { store, events, logStatePath } = context;
  const write = createEventWriter(response);
  const writeSteps = createStepWriter(store, write);
  const unfollow = events.subscribe(id, (event) => {
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
    if (stepOf(line) !== null) writeSteps(following.sent, ++stepLines);
    write({ event: "line", line });
  });
  const snapshot = openLogSnapshot(logStatePath, id);
  const parts = { context, write, writeSteps, response, snapshot, cutter, stop };
  const sent = findDeployment(store, id) as Deployment;
  const following: Following = { ...parts, sent, hasLiveLines: false, held: [] };
  return following;
}

function sendDeployment({ write, sent }: Following): void {
  write({ event: "deployment", deployment: deploymentJson(sent) });
}

function take(following: Following, event: DeploymentEvent): void {
  if (event.kind === "changed") look(following);
  else if (event.kind === "step") following.writeSteps(following.sent);
  else {
    following.hasLiveLines = true;
    following.write({ event: "line", line: event.line });
  }
}

/** Called by a timer, so nothing else catches a fault of the disk: it ends this stream and not the service. */
function lookAgain(following: Following): void {
  if (following.held !== null) return;
  try {
    look(following);
  } catch (error) {
    giveUp(following, error);
  }
}

function look(following: Following): void {
  const { context, sent } = following;
  const now = findDeployment(context.store, sent.id);
  if (now !== null && now.state === sent.state && now.attempts === sent.attempts) return;
  following.sent = now ?? sent;
  if (now === null || isFinished(now.state)) conclude(following);
  else sendDeployment(following);
}

function conclude(following: Following): void {
  const { response, writeSteps, cutter, stop, sent, hasLiveLines } = following;
  stop();
  if (!hasLiveLines) cutter.finish();
  writeSteps(sent);
  sendDeployment(following);
  response.end();
}

function giveUp({ context, response }: Reader, error: unknown): void {
  context.log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
  response.destroy();
}

type WriteEvent = (event: ControlEvent) => void;

const mostWaitingBytes = 1024 ** 2;

/** Writes events to one reader. If it is slow, lines are left out and counted; no other event is left out. */
function createEventWriter(response: ServerResponse): WriteEvent {
  let skipped = 0;
  const writeNow = (event: ControlEvent) => {
    if (!response.destroyed) response.write(`${JSON.stringify(event)}\n`);
  };
  return (event) => {
    if (event.event === "line" && response.writableLength > mostWaitingBytes) {
      skipped += 1;
      return;
    }
    if (skipped > 0) writeNow({ event: "skipped", lines: skipped });
    skipped = 0;
    writeNow(event);
  };
}

/** Writes the steps of a deployment that are known now, or only the first `count` of them, each not written before. */
type StepWriter = (deployment: Deployment, count?: number) => void;

/** Makes a writer that writes each step at most twice: when it has begun, and when it is over. */
function createStepWriter(store: Store, write: WriteEvent): StepWriter {
  let begun = 0;
  const ended = new Set<number>();
  return (deployment, count = Number.POSITIVE_INFINITY) => {
    for (const [index, step] of listSteps(store, deployment).slice(0, count).entries()) {
      if (index >= begun) {
        begun += 1;
        write({ event: "step", step: { ...stepJson(step), durationMs: null } });
      }
      // The end of the last one requested comes with the beginning of the next.
      if (step.endedAtMs === null || ended.has(index) || index + 1 >= count) continue;
      ended.add(index);
      write({ event: "step", step: stepJson(step) });
    }
  };
}
