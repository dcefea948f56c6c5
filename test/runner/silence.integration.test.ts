import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import type { LogLine } from "../harness/processes.ts";
import { untilDeployment } from "../harness/records.ts";
import { startService } from "../harness/service.ts";

const token = "tok_5f0b9a1c2d3e4f60718293a4b5c6d7e8";
/** Hangs in a child of a child, with a secret in its command line, and in one that has lost its environment and parent. */
const hangingScript = `#!/bin/sh
echo "==> Pull"
echo "asking with $A_TOKEN"
(env -i sleep 53 &)
sh -c 'sleep 52; echo "$1"' ask "$A_TOKEN"
`;
const options = {
  script: hangingScript,
  env: { DEPLOY_SILENCE: "1s", DEPLOY_ENV: "A_TOKEN", A_TOKEN: token, SHUTDOWN_GRACE: "0" },
};

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
  const silences = service.log.lines.filter(({ event }) => event === "deployment.silent");
  assert.equal(silences.length, 2, "again when it has doubled");
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
  assertProcesses(processes);
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
  assertProcesses(rest.slice(at + 1));
});

function assertReport({ deployment, step, lastLine, silentMs, processes, level }: LogLine): void {
  assert.deepEqual([deployment, step, lastLine, level], [1, "Pull", "asking with ***", "warn"]);
  assert.ok(Number(silentMs) >= 1_000, `${silentMs} ms`);
  assertProcesses(processes);
}

function assertProcesses(processes: unknown): void {
  assert.ok(Array.isArray(processes));
  const commands = processes.map((line) => String(line).replace(/^ *\d+ [a-z ]+, [\d.]+ m?s: /, ""));
  assert.match(commands[0] ?? "", /^\/bin\/sh \S+\/deploy\.sh refs\/heads\/main [0-9a-f]{40}$/);
  for (const command of ['sh -c sleep 52; echo "$1" ask ***', "sleep 52", "sleep 53"])
    assert.ok(commands.includes(command), commands.join("\n"));
}
