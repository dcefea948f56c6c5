import assert from "node:assert/strict";
import { test } from "node:test";
import type { WholeStatusJson } from "../../src/calls/shapes.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startCommand } from "../harness/hotpush.ts";
import { pushTo, startProjects, waitsForGo } from "../harness/machine.ts";
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
  await command.waitForLine(/^Deployment 2 waits: Deployment 1 is running/);
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

test("what waits has its reason: a project that runs, a pause", async (t) => {
  const { service, go } = await startProjects(t, { shop: waitsForGo, blog: "true" });
  const target = { ...service, cwd: "/" };
  const reasonOf = async () => (await hotpushJson<WholeStatusJson>(target, "status")).waiting[0]?.waitReason;
  await pushTo(service, "shop");
  await service.log.waitFor(({ event }) => event === "deployment.started");
  const { stdout } = await hotpush(target, "logs", "--project", "blog");
  assert.equal(stdout, "");
  await pushTo(service, "blog", githubPush({ after: "b".repeat(40) }));
  assert.match((await reasonOf()) ?? "", /^Deployment 1 of shop is running/);
  const shown = await hotpush(target, "logs", "--project", "blog");
  assert.equal(shown.stdout, "Deployment 2 waits: Deployment 1 of shop is running, and comes first.\n");
  await hotpush(target, "pause", "--project", "blog");
  assert.match((await reasonOf()) ?? "", /paused.*hotpush resume/);
  go("shop");
  await service.log.waitFor(({ event }) => event === "deployment.succeeded");
  await hotpush(target, "pause", "--project", "shop");
  await pushTo(service, "shop", githubPush({ after: "c".repeat(40) }));
  const last = await hotpush(target, "logs", "--project", "shop");
  assert.match(last.stdout, /^Deployment 3 waits: .*hotpush resume\n$/m);
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
