import assert from "node:assert/strict";
import { test } from "node:test";
import { createSilenceMeasure, watchSilence } from "../../src/runner/silence.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import type { LogLine } from "../harness/log-reader.ts";
import { untilDeployment } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const token = "tok_5f0b9a1c2d3e4f60718293a4b5c6d7e8";
/**
 * Hangs in a child of a child, with a secret in its command line, and in two that have lost their environment: one that
 * has left the group, and one whose parent is gone.
 */
const hangingScript = `#!/bin/sh
echo "==> Pull"
echo "asking with $A_TOKEN"
env -i setsid sleep 51 &
(env -i sleep 53 &)
sh -c 'sleep 52; echo "$1"' ask "$A_TOKEN"
`;
const options = {
  script: hangingScript,
  env: { DEPLOY_SILENCE: "1s", DEPLOY_ENV: "A_TOKEN", A_TOKEN: token, SHUTDOWN_GRACE: "0" },
};

test("a silence is reported once, and again each time it has doubled", () => {
  const measure = createSilenceMeasure(20, 100);
  assert.deepEqual(measure(119, 100), { reportedMs: null, nextMs: 1 });
  assert.deepEqual(measure(120, 100), { reportedMs: 20, nextMs: 20 });
  assert.deepEqual(measure(139, 100), { reportedMs: null, nextMs: 1 });
  assert.deepEqual(measure(141, 100), { reportedMs: 41, nextMs: 39 });
  assert.deepEqual(measure(500, 100), { reportedMs: 400, nextMs: 240 });
});

test("output begins a new silence, which is reported from the beginning", () => {
  const measure = createSilenceMeasure(20, 0);
  assert.deepEqual(measure(20, 15), { reportedMs: null, nextMs: 15 });
  assert.deepEqual(measure(200, 15), { reportedMs: 185, nextMs: 135 });
  assert.deepEqual(measure(320, 310), { reportedMs: null, nextMs: 10 });
  assert.deepEqual(measure(330, 310), { reportedMs: 20, nextMs: 20 });
});

test("no silence is reported if the setting is 0, or after the watch has ended", async (t) => {
  const reported: number[] = [];
  const quietSinceMs = () => 0;
  const onSilent = (silentMs: number) => void reported.push(silentMs);
  t.after(watchSilence({ silenceMs: 0, quietSinceMs, onSilent }));
  watchSilence({ silenceMs: 1, quietSinceMs, onSilent })();
  const counted: number[] = [];
  t.after(watchSilence({ silenceMs: 1, quietSinceMs, onSilent: (silentMs) => void counted.push(silentMs) }));
  await until("another watch has reported", () => counted.length > 0);
  assert.deepEqual(reported, []);
});

test("a script that hangs is reported with its step, last line and processes", async (t) => {
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

test("an adopted script that hangs is reported too", async (t) => {
  const first = await startService(t, options);
  await deliver(first.url, githubPush());
  await first.log.waitFor(({ event, msg }) => event === "deployment.output" && msg === "asking with ***");
  await first.end("SIGKILL");
  const second = await first.again();
  const { processes } = await second.log.waitFor(({ event }) => event === "deployment.silent");
  assertTree(processes);
  await second.end();
});

test("the record of a timed-out script has its last lines and its processes", async (t) => {
  const service = await startService(t, { ...options, env: { ...options.env, DEPLOY_TIMEOUT: "1s" } });
  await deliver(service.url, githubPush());
  const { problem } = await untilDeployment(service.statePath, 1, ({ state }) => state === "timed_out");
  const [sentence = "", ...rest] = (problem?.detail ?? "").split("\n");
  assert.match(
    sentence,
    /^deploy\.sh ran for longer than 1 s, the value of DEPLOY_TIMEOUT\. It was in the step Pull\. /,
  );
  const at = rest.indexOf("Its processes at the time-out:");
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
  assert.ok(lines.includes("  sleep 51") && lines.includes("sleep 53"), text);
  const asking = lines.indexOf('  sh -c sleep 52; echo "$1" ask ***');
  assert.equal(lines[asking + 1], "    sleep 52", text);
}
