import { dirname } from "node:path";
import { plainLog } from "../../platform/docker/diagnosis.ts";
import { type Engine, getJson } from "../../platform/docker/engine.ts";
import { hostDirectoryOf } from "../compose/locate-project.ts";
import type { LiveDirectory } from "../context.ts";
import { hostOf } from "./tally.ts";

/**
 * How many clients of each host left in the middle of an answer, by the warnings of Caddy, which say who ended it.
 * Its log of requests does not.
 *
 * @param sinceMs milliseconds since 1970
 * @returns null if Caddy's log cannot be read
 */
export async function clientsThatLeft(
  engine: Engine,
  live: LiveDirectory,
  sinceMs: number,
): Promise<ReadonlyMap<string, number> | null> {
  try {
    const left = new Map<string, number>();
    for (const id of await holdersOf(engine, live))
      for (const line of await linesSince(engine, id, sinceMs)) {
        const host = hostOfLeaver(line);
        if (host !== null) left.set(host, (left.get(host) ?? 0) + 1);
      }
    return left;
  } catch {
    return null;
  }
}

interface Listed {
  readonly Id: string;
  readonly Mounts?: readonly { readonly Source?: string }[];
}

/** The running containers with the live files: Caddy, and perhaps Hotpush, which writes no such lines. */
async function holdersOf(engine: Engine, live: LiveDirectory): Promise<readonly string[]> {
  const own = await hostDirectoryOf(engine, live.path);
  // On the machine part, Caddy has the directories of all projects.
  const source = live.project === null ? own : dirname(own);
  const running = await getJson<readonly Listed[]>(engine, "/containers/json");
  return running
    .filter(({ Mounts = [] }) => Mounts.some(({ Source }) => Source === source))
    .map(({ Id }) => Id);
}

async function linesSince(engine: Engine, id: string, sinceMs: number): Promise<readonly string[]> {
  const raw = await engine.get(
    `/containers/${id}/logs?stdout=1&stderr=1&since=${(sinceMs / 1_000).toFixed(3)}`,
  );
  return plainLog(raw).split("\n");
}

/**
 * The host that a client left in the middle of an answer, by a line of Caddy's log; null if the line says something else. Caddy's
 * warning has the error last: `reading: unexpected EOF` if the app ended, `writing: …` if the client did.
 */
export function hostOfLeaver(line: string): string | null {
  if (!line.includes("aborting with incomplete response")) return null;
  const { request, error = "" } = JSON.parse(line.slice(line.indexOf("{"))) as Warning;
  const isLeaver = error.startsWith("writing:") || error.includes("context canceled");
  return isLeaver && request?.host !== undefined ? hostOf(request.host) : null;
}

interface Warning {
  readonly request?: { readonly host?: string };
  readonly error?: string;
}
