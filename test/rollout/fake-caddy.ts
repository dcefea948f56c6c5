import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { LiveDirectory } from "../../src/rollout/context.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** A directory of live files: of a project with a Caddy of its own, or of `project` on the server. */
export function liveDirectory(t: TestContext, project: string | null = null): LiveDirectory {
  const root = temporaryDirectory(t);
  const path = join(root, project ?? ".");
  mkdirSync(path, { recursive: true });
  return { path, adminSocket: join(root, "admin.sock"), project };
}

/** Something that answers as Caddy's admin API does. */
export async function fakeCaddy(
  t: TestContext,
  { adminSocket }: LiveDirectory,
  answer: (path: string) => unknown,
): Promise<void> {
  const server = createServer((request, response) => response.end(JSON.stringify(answer(request.url ?? ""))));
  await listenAt(t, server, adminSocket);
}
