/**
 * `node bench/walk.ts [--list]`: how much code one push runs through, from the socket to the first line of the script.
 * Starts the real service and sends it a push, while V8 counts the calls (Profiler.startPreciseCoverage).
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../test/harness/temporary.ts";
import { until } from "../test/harness/until.ts";
import { pushesToMain } from "./accept.ts";
import { startHotpush } from "./peers/hotpush.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";

const walked = await withScope(async (scope) => {
  const directory = temporaryDirectory(scope);
  const path = join(directory, "walk.json");
  const started = join(directory, "started");
  const { hookUrl, pid } = await startHotpush(scope, {
    script: `#!/bin/sh\necho started >${started}\nexec sleep 30\n`,
    flags: ["--import", join(import.meta.dirname, "walk-preload.ts")],
    env: { WALK_PATH: path },
  });
  process.kill(pid, "SIGUSR2");
  await until("the counting", () => existsSync(`${path}.started`));
  const [push] = pushesToMain(1);
  if (push) await send(hookUrl, push);
  await until("the first line of the script", () => existsSync(started));
  process.kill(pid, "SIGUSR2");
  await until("the counts", () => existsSync(path));
  execFileSync("pkill", ["-P", String(pid)]);
  return JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, readonly string[]>>;
});

const files = Object.entries(walked).sort(([a], [b]) => a.localeCompare(b));
if (process.argv.includes("--list"))
  for (const [file, names] of files) console.log(`${file}: ${names.join(", ")}`);
const count = files.reduce((sum, [, names]) => sum + names.length, 0);
console.log(`One push runs through ${files.length} files and ${count} functions of src/.`);
