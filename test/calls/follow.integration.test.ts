import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, startCommand } from "../harness/hotpush.ts";
import { letGo, startService } from "../harness/service.ts";

interface Event {
  readonly event: string;
  readonly line?: string;
  readonly printedAt?: string;
  readonly deployment?: { readonly state: string };
}

const steppingScript = `#!/bin/sh
echo "==> Pull"
echo one
printf 'with'
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
echo 'out a break'
echo "==> Build"
echo two
printf 'no line end'
`;

test("a late follower sees the output so far, and each line once", async (t) => {
  const service = await startService(t, { script: steppingScript });
  await deliver(service.url, githubPush());
  const early = startCommand(t, service, "logs", "-f", "--json");
  await early.waitForLine(/"one"/);
  const late = startCommand(t, service, "logs", "-f", "--json", "1");
  await late.waitForLine(/"one"/);
  letGo(service.repoPath);
  for (const { ended, lines } of [early, late]) {
    assert.equal(await ended, 0);
    assert.deepEqual(eventsOf(lines), expected);
  }
  const after = await hotpush(service, "logs", "--json");
  assert.deepEqual(eventsOf(after.stdout.trimEnd().split("\n")), expected.slice(1));
});

test("a command within the container of run leaves when its caller's input ends", async (t) => {
  const service = await startService(t, { script: steppingScript });
  await deliver(service.url, githubPush());
  const within = { statePath: service.statePath, env: { HOTPUSH_WITHIN: "" } };
  const command = startCommand(t, within, "logs", "-f", "--json");
  await command.waitForLine(/"one"/);
  command.child.stdin.end();
  assert.notEqual(await command.ended, 0);
  letGo(service.repoPath);
});

const expected = [
  "deployment running",
  "==> Pull",
  "one",
  "without a break",
  "==> Build",
  "two",
  "no line end",
  "deployment succeeded",
];

test("following ends when the deployment is superseded, or goes on through its run", async (t) => {
  const service = await startService(t, { script: steppingScript });
  for (const _ of [1, 2]) await deliver(service.url, githubPush());
  const command = startCommand(t, service, "logs", "-f", "2");
  await command.waitForLine(/waits for its turn/);
  await deliver(service.url, githubPush());
  assert.equal(await command.ended, 0);
  assert.match(command.lines.at(-1) ?? "", /^Deployment 2 was superseded by deployment 3\.$/);
  const next = startCommand(t, service, "logs", "-f", "3", "--json");
  await next.waitForLine(/queued/);
  letGo(service.repoPath);
  assert.equal(await next.ended, 0);
  const events = eventsOf(next.lines);
  assert.deepEqual(events.slice(0, 2), ["deployment queued", "deployment running"]);
  assert.equal(events.at(-1), "deployment succeeded");
});

test("if the service goes away, following ends with 1 and says how to go on", async (t) => {
  const service = await startService(t, { script: steppingScript });
  await deliver(service.url, githubPush());
  const command = startCommand(t, service, "logs", "-f");
  await command.waitForLine(/one/);
  await service.end("SIGKILL");
  assert.equal(await command.ended, 1);
  assert.deepEqual(command.errors, ["hotpush: the service went away. When it is back: hotpush logs -f 1"]);
  letGo(service.repoPath);
});

function eventsOf(lines: readonly string[]): readonly string[] {
  return lines.map((text) => {
    const { event, line, printedAt, deployment } = JSON.parse(text) as Event;
    if (event !== "line") return `${event} ${deployment?.state}`;
    assert.ok(Date.parse(printedAt ?? "") > 0, text);
    return line ?? "";
  });
}
