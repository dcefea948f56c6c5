/**
 * `node bench/walk.ts [log] [--list]`: how much code one push runs through, from the socket to the first line of the script;
 * with `log`, how much a request of the page for a log. Starts the real service, while V8 counts the calls
 * (Profiler.startPreciseCoverage).
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { callRun } from "../src/calls/client.ts";
import { freePort } from "../test/harness/listen.ts";
import { temporaryDirectory } from "../test/harness/temporary.ts";
import { until } from "../test/harness/until.ts";
import { pushesToMain } from "./accept.ts";
import { startHotpush } from "./peers/hotpush.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";

const isOfLog = process.argv.includes("log");
const walked = await withScope(async (scope) => {
  const directory = temporaryDirectory(scope);
  const path = join(directory, "walk.json");
  const started = join(directory, "started");
  const statePath = join(directory, "state");
  const pagePort = String(await freePort());
  const page = { PAGE_URL: `http://localhost:${pagePort}`, PAGE_PORT: pagePort };
  const { hookUrl, pid } = await startHotpush(scope, {
    statePath,
    script: `#!/bin/sh\necho begun\necho started >${started}\n${isOfLog ? "" : "exec sleep 30\n"}`,
    flags: ["--import", join(import.meta.dirname, "walk-preload.ts")],
    env: { WALK_PATH: path, ...(isOfLog && page) },
  });
  const push = async () => {
    for (const one of pushesToMain(1)) await send(hookUrl, one);
    await until("the first line of the script", () => existsSync(started));
  };
  const readLog = async () => {
    const { secret } = await callRun(statePath, "makeToken", { name: "walk", role: "viewer" });
    const headers = { authorization: `Bearer ${secret}` };
    const log = async () =>
      await (await fetch(`${page.PAGE_URL}/api/deployments/1/log?format=timed`, { headers })).text();
    await until("its line", async () => (await log()).includes("begun"));
    await until("its end", async () => {
      const { deployment } = await callRun(statePath, "deployment", { id: 1 });
      return deployment.state === "succeeded";
    });
    return log;
  };
  if (isOfLog) await push();
  const act = isOfLog ? await readLog() : push;
  process.kill(pid, "SIGUSR2");
  await until("the counting", () => existsSync(`${path}.started`));
  await act();
  process.kill(pid, "SIGUSR2");
  await until("the counts", () => existsSync(path));
  if (!isOfLog) execFileSync("pkill", ["-P", String(pid)]);
  return JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, readonly string[]>>;
});

const files = Object.entries(walked).sort(([a], [b]) => a.localeCompare(b));
if (process.argv.includes("--list"))
  for (const [file, names] of files) console.log(`${file}: ${names.join(", ")}`);
const count = files.reduce((sum, [, names]) => sum + names.length, 0);
const what = isOfLog ? "One request for a log" : "One push";
console.log(`${what} runs through ${files.length} files and ${count} functions of src/.`);
