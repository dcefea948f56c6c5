import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Delivery } from "../test/harness/delivery.ts";
import { temporaryDirectory } from "../test/harness/temporary.ts";
import { withScope } from "./scope.ts";

export interface Load {
  readonly delivery: Delivery;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const script = join(import.meta.dirname, "wrk.lua");

/**
 * Sends one delivery repeatedly on keep-alive connections, each time as soon as the last is answered.
 *
 * @throws Error if one was not answered, or with a status of 400 or more
 */
export async function loadWith(url: string, { delivery, connections, seconds }: Load): Promise<LoadResult> {
  return await withScope(async (scope) => {
    const bodyPath = join(temporaryDirectory(scope), "body");
    writeFileSync(bodyPath, delivery.body);
    const headers = Object.entries(delivery.headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    const settings = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "30s", "-s", script];
    const env = { ...process.env, BENCH_BODY: bodyPath };
    const { stdout } = await promisify(execFile)("wrk", [...settings, ...headers, url], { env });
    return resultOf(stdout, url);
  });
}

function resultOf(output: string, url: string): LoadResult {
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`wrk gave no result for ${url}:\n${output}`);
  const { requests, seconds, failed, p50Ms, p99Ms } = JSON.parse(line) as Record<string, number>;
  if (failed !== 0 || !requests || !seconds)
    throw new Error(`${failed} of ${requests} requests to ${url} failed`);
  return { requests, perSecond: requests / seconds, p50Ms: p50Ms ?? Number.NaN, p99Ms: p99Ms ?? Number.NaN };
}
