import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** Builds Hotpush's real image from this checkout as `tag`. */
export async function buildImage(env: NodeJS.ProcessEnv, tag: string): Promise<void> {
  await run("docker", ["build", "--quiet", "--tag", tag, root], { env, timeout: 300_000 });
}

export async function removeImage(env: NodeJS.ProcessEnv, tag: string): Promise<void> {
  await run("docker", ["rmi", "--force", tag], { env }).catch(() => {});
}
