import { execFile } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { promisify } from "node:util";
import type { Place } from "./git.ts";

const timeoutMs = 20_000;

/** Starts the app by hand, as before there was a webhook. */
export async function startApp({ path, env }: Place): Promise<void> {
  await promisify(execFile)("./restart.sh", { cwd: path, env, timeout: timeoutMs });
}

/** @returns the answer of the app at `url`, on a new connection, so that the current listener answers */
export async function askApp(url: string): Promise<string> {
  const response = await fetch(url, {
    headers: { connection: "close" },
    signal: AbortSignal.timeout(timeoutMs),
  });
  return await response.text();
}

/** @returns a free port of this machine */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
