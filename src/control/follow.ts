import type { ServerResponse } from "node:http";
import { type Deployment, findDeployment } from "../deployments/deployment.ts";
import type { DeploymentEvent } from "../deployments/events.ts";
import { isFinished } from "../deployments/states.ts";
import { listSteps } from "../deployments/steps.ts";
import { repeat } from "../platform/repeat.ts";
import { createLineCutter, type LineCutter, stepOf } from "../runner/lines.ts";
import { logPath } from "../runner/log-file.ts";
import { readLogTimes } from "../runner/log-times.ts";
import { deploymentJson, lineJson } from "./deployment-json.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { type LogSnapshot, lastLineByte, openLogSnapshot, sendSnapshot } from "./log.ts";
import { type ControlContext, type ControlReply, type ControlRequest, refusal } from "./route.ts";
import { createEventWriter, createStepWriter, type StepWriter, type WriteEvent } from "./write-events.ts";

/** How soon a change by another instance is noticed, which no event in this process announces. */
const lookIntervalMs = 1_000;
/** Events held back while the log so far is still being sent; later ones are in the log as well. */
const mostHeld = 10_000;

/**
 * Sends what a deployment has printed and done and, unless `follow=false`, what it does from now on, at once. The first
 * event is the deployment as it is, the last one the deployment as it ended. With `from=<attempt>:<byte>`, the place after
 * the last line that a reader has, only the lines after it; with `from=end` those that end from now on.
 */
export function followDeployment(context: FollowContext, { id, query }: ControlRequest): ControlReply {
  const deployment = wantedDeployment(context.store, id);
  if (deployment === null) return notFound(id);
  const isFollowing = query.get("follow") !== "false";
  const from = query.get("from");
  const fromByte = from === "end" ? lastLineByte(context.logStatePath, deployment.id) : placeIn(from);
  if (fromByte === null) return refusal(400, "The place to go on from must be <attempt>:<byte>.");
  return {
    kind: "stream",
    type: "application/x-ndjson",
    write: (response) => follow({ context, response }, { id: deployment.id, fromByte, isFollowing }),
  };
}

/** All attempts print to one log, so that the byte alone is enough. */
function placeIn(text: string | null): number | null {
  if (text === null) return 0;
  const [, byte] = /^\d{1,9}:(\d{1,15})$/.exec(text) ?? [];
  return byte === undefined ? null : Number(byte);
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

interface Wanted {
  readonly id: number;
  readonly fromByte: number;
  readonly isFollowing: boolean;
}

async function follow(reader: Reader, wanted: Wanted): Promise<void> {
  const following = startFollowing(reader, wanted);
  const { response, write, writeSteps, snapshot, cutter } = following;
  sendDeployment(following);
  if (snapshot.startByte < wanted.fromByte) write({ event: "restarted" });
  // The lines that announced them are not sent.
  if (snapshot.startByte > 0) writeSteps(following.sent);
  await sendSnapshot(snapshot, response, cutter.push);
  if (isFinished(following.sent.state) || !wanted.isFollowing) return conclude(following);
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
function startFollowing({ context, response }: Reader, { id, fromByte }: Wanted): Following {
  const { store, events, logStatePath } = context;
  const write = createEventWriter(response);
  const writeSteps = createStepWriter(store, write);
  const unfollow = events.subscribe(id, (event) => {
    if (following.held === null) take(following, event);
    else if (following.held.length < mostHeld) following.held.push(event);
  });
  const looking = repeat(async () => lookAgain(following), {
    intervalMs: lookIntervalMs,
    onFault: (error) => giveUp(following, error),
  });
  const stop = () => {
    unfollow();
    looking.stop();
  };
  response.on("close", stop);
  const snapshot = openLogSnapshot(logStatePath, id, fromByte);
  const timeOf = readLogTimes(logPath(logStatePath, id));
  let [stepLines, lineByte] = [0, snapshot.startByte];
  const cutter = createLineCutter((text, endByte) => {
    if (snapshot.startByte === 0 && stepOf(text) !== null) writeSteps(following.sent, ++stepLines);
    write(lineJson({ text, endByte, printedAtMs: timeOf(lineByte) }));
    lineByte = endByte;
  }, snapshot.startByte);
  const parts = { context, write, writeSteps, response, snapshot, cutter, stop };
  const sent = findDeployment(store, id) as Deployment;
  const following: Following = { ...parts, sent, hasLiveLines: false, held: [] };
  if (!response.destroyed) looking.start();
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
    following.write(lineJson(event.line));
  }
}

function lookAgain(following: Following): void {
  if (following.held === null) look(following);
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
  // The end of its last line may still come.
  if (!hasLiveLines && isFinished(sent.state)) cutter.finish();
  writeSteps(sent);
  sendDeployment(following);
  response.end();
}

/** A fault of the disk ends this stream and not the service. */
function giveUp({ context, response }: Reader, error: unknown): void {
  context.log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
  response.destroy();
}
