import assert from "node:assert/strict";
import { test } from "node:test";
import { watchSilence } from "../../src/runner/silence.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import type { LogLine } from "../harness/log-reader.ts";
import { untilDeployment } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const token = "tok_5f0b9a1c2d3e4f60718293a4b5c6d7e8";
/** Hangs in a child of a child, with a secret in its command line, and in one that has lost its environment. */
const hangingScript = `#!/bin/sh
echo "==> Pull"
echo "asking with $A_TOKEN"
env -i sleep 51 &
sh -c 'sleep 52; echo "$1"' ask "$A_TOKEN"
`;
const options = {
  script: hangingScript,
  env: { DEPLOY_SILENCE: "1s", DEPLOY_ENV: "A_TOKEN", A_TOKEN: token, SHUTDOWN_GRACE: "0" },
};

test("a silence is told once, and again each time it has doubled", async (t) => {
  const told: number[] = [];
  const sinceMs = performance.now();
  const stop = watchSilence({
    silenceMs: 20,
    quietSinceMs: () => sinceMs,
    onSilent: (silentMs) => told.push(silentMs),
  });
  t.after(stop);
  await until("it was told four times", () => told.length >= 4);
  for (const [index, silentMs] of told.entries()) assert.ok(silentMs >= 20 * 2 ** index, told.join(", "));
});

test("output begins a new silence, of which the first is told again", async (t) => {
  const told: number[] = [];
  let sinceMs = performance.now();
  const stop = watchSilence({
    silenceMs: 20,
    quietSinceMs: () => sinceMs,
    onSilent: (silentMs) => told.push(silentMs),
  });
  t.after(stop);
  await until("it was told three times", () => told.length >= 3);
  const toldBefore = told.length;
  sinceMs = performance.now();
  await until("it was told anew", () => told.length > toldBefore);
  const anew = told[toldBefore] ?? 0;
  assert.ok(anew >= 20 && anew <= performance.now() - sinceMs, told.join(", "));
});

test("no silence is told where the setting is 0, nor after the watch has ended", async (t) => {
  const told: number[] = [];
  const quietSinceMs = () => 0;
  watchSilence({ silenceMs: 0, quietSinceMs, onSilent: (silentMs) => told.push(silentMs) });
  watchSilence({ silenceMs: 1, quietSinceMs, onSilent: (silentMs) => told.push(silentMs) })();
  const counted: number[] = [];
  const stop = watchSilence({ silenceMs: 1, quietSinceMs, onSilent: (silentMs) => counted.push(silentMs) });
  t.after(stop);
  await until("another watch has told", () => counted.length > 0);
  assert.deepEqual(told, []);
});

test("a script that hangs is reported while it runs: its step, its last line and what it waits for", async (t) => {
  const service = await startService(t, options);
  await deliver(service.url, githubPush());
  const line = await service.log.waitFor(({ event }) => event === "deployment.silent");
  assertReport(line);
  assert.match(
    line.msg ?? "",
    /^Deployment 1 has been silent for [\d.]+ s in the step Pull\. Its last line: asking with \*\*\*\nIts processes:\n {2}\d+ [a-z]+, /,
  );
  const isLater = ({ event, silentMs }: LogLine) =>
    event === "deployment.silent" && Number(silentMs) >= 2_000;
  await service.log.waitFor(isLater);
  assert.ok(!JSON.stringify(service.log.lines).includes(token));
  await service.end();
});

test("a script that was adopted and hangs is reported too", async (t) => {
  const first = await startService(t, options);
  await deliver(first.url, githubPush());
  await first.log.waitFor(({ event, msg }) => event === "deployment.output" && msg === "asking with ***");
  await first.end("SIGKILL");
  const second = await first.again();
  const { processes } = await second.log.waitFor(({ event }) => event === "deployment.silent");
  assertTree(processes);
  await second.end();
});

test("a script that is timed out leaves its last lines and its processes in the record", async (t) => {
  const service = await startService(t, { ...options, env: { ...options.env, DEPLOY_TIMEOUT: "1s" } });
  await deliver(service.url, githubPush());
  const { problem } = await untilDeployment(service.statePath, 1, ({ state }) => state === "timed_out");
  const [sentence = "", ...rest] = (problem?.detail ?? "").split("\n");
  assert.match(
    sentence,
    /^deploy\.sh ran for longer than 1 s, the value of DEPLOY_TIMEOUT\. It was in the step Pull\. /,
  );
  const at = rest.indexOf("Its processes when its time was over:");
  assert.deepEqual(rest.slice(0, at), ["Its last lines:", "  ==> Pull", "  asking with ***"]);
  assertTree(rest.slice(at + 1));
});

function assertReport({ deployment, step, lastLine, silentMs, processes, level }: LogLine): void {
  assert.deepEqual([deployment, step, lastLine, level], [1, "Pull", "asking with ***", "warn"]);
  assert.ok(Number(silentMs) >= 1_000, `${silentMs} ms`);
  assertTree(processes);
}

/** Each process stands below the one that started it. */
function assertTree(processes: unknown): void {
  assert.ok(Array.isArray(processes));
  const text = processes.map((line) => String(line).replace(/\d+ [a-z ]+, [\d.]+ m?s: /, "")).join("\n");
  const indent = /^ */.exec(text)?.[0] ?? "";
  const lines = text.split("\n").map((line) => line.slice(indent.length));
  assert.match(lines[0] ?? "", /^\/bin\/sh \S+\/deploy\.sh refs\/heads\/main [0-9a-f]{40}$/);
  assert.ok(lines.includes("  sleep 51"), text);
  const asking = lines.indexOf('  sh -c sleep 52; echo "$1" ask ***');
  assert.equal(lines[asking + 1], "    sleep 52", text);
}
