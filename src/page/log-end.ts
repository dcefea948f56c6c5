import { text } from "node:stream/consumers";
import type { OneDeploymentJson } from "../control/history.ts";
import type { Refused, RunClient, Visit } from "./run-client.ts";
import type { LogPart } from "./screens/log.ts";

/** As much of a log as a page has when it is loaded. */
const mostBytes = 16 * 1024;
const timeoutMs = 10_000;

/** Reads the last lines of a log. */
export async function readLogEnd(
  run: RunClient,
  visit: Visit,
  { deployment, logBytes }: OneDeploymentJson,
): Promise<LogPart | Refused> {
  const fromByte = Math.max(0, logBytes - mostBytes);
  const path = `/deployments/${deployment.id}/log?from=${fromByte}&to=${logBytes}`;
  const answer = await run.open(visit, path, AbortSignal.timeout(timeoutMs));
  if ("kind" in answer) return answer;
  const end = await text(answer);
  // It may begin in the middle of a line.
  return { fromByte, text: fromByte === 0 ? end : end.slice(end.indexOf("\n") + 1) };
}
