import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { commandEnvironment, launcher } from "../harness/hotpush.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** The settings of a service, with a secret among them. */
export const settings = `# the settings of Hotpush
REPO_PATH=/srv/app
WEBHOOK_SECRET="${testSecret}" # of the form
LOG_LEVEL=info`;

/** A `.env` with `content` in a new directory, and that directory as the working directory of commands. */
export function envFile(t: TestContext, content: string, cwd = temporaryDirectory(t)) {
  const path = join(cwd, ".env");
  writeFileSync(path, content);
  chmodSync(path, 0o600);
  return { path, target: { statePath: join(cwd, "none"), cwd } };
}

/** Runs `hotpush secret rotate --stdin` with `secret`. */
export function rotateTo(secret: string, cwd: string) {
  const env = commandEnvironment({ statePath: join(cwd, "none") });
  const options = { cwd, env, input: `${secret}\n`, encoding: "utf8" } as const;
  return spawnSync(launcher, ["secret", "rotate", "--stdin"], options);
}
