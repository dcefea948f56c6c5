import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { letGo } from "../harness/script.ts";

/** The members of each object that `--json` prints. They are a contract: none is renamed or removed. */
const members = {
  status:
    "address branches catchUp fault health hold inbox last paused port project repoPath running secrets serverFaults startedAt statePath version waiting",
  deployment:
    "attempts author before cancelledBy checkedOutCommit commit createdAt deliveryId durationMs exitCode finishedAt host id liveAt problem project pusher ref repository requestedBy requests skipReason startedAt state subject supersededBy trigger waitReason",
  step: "attempt durationMs name startedAt",
  secrets: "advice canDropPrevious current previous",
  catchUp: "failure intervalMs lookedAt",
  health: "detail isHealthy",
  project: "branches fault isServed last live name paused repoPath waiting webUrl",
  pause: "by reason since",
};
const script = `#!/bin/sh
echo "==> Build"
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
exit 1
`;

test("--json prints the members of the contract, and no other", async (t) => {
  const env = { WEBHOOK_SECRET_PREVIOUS: "the secret that was before this one, 2025" };
  const service = await startAnswering(t, { script, env });
  for (const ref of ["refs/heads/main", "refs/heads/master"]) await deliver(service.url, githubPush({ ref }));
  await service.log.waitFor(({ event }) => event === "deployment.step");
  const status = await hotpushJson<Record<string, { deployment: object; step: object }>>(service, "status");
  letGo(service.repoPath);
  await service.log.waitForEnding(2);
  const { deployments } = await hotpushJson<{ deployments: object[] }>(service, "history");
  const { paused } = await hotpushJson<{ paused: object }>(service, "pause", "--reason", "a test");
  const { projects } = await hotpushJson<{ projects: object[] }>(service, "projects");
  const { running, secrets, catchUp, health } = status;
  const printed = { status, deployment: running?.deployment, step: running?.step, secrets, catchUp, health };
  for (const [name, value] of [
    ...Object.entries(printed),
    ...deployments.map((one) => ["deployment", one] as const),
    ["project", projects[0]] as const,
    ["pause", paused] as const,
  ]) {
    const sorted = Object.keys(value ?? {}).sort();
    assert.equal(sorted.join(" "), members[name as keyof typeof members], name);
  }
});

test("logs --json prints deployments, steps and lines", async (t) => {
  const service = await startAnswering(t);
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { stdout } = await hotpush(service, "logs", "1", "--json");
  const shapes = stdout
    .trimEnd()
    .split("\n")
    .map((line) => Object.keys(JSON.parse(line)).join(" "));
  assert.deepEqual([...new Set(shapes)].sort(), [
    "event deployment",
    "event line endByte printedAt",
    "event step",
  ]);
});

test("docs/cli.md explains each of these members", () => {
  const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
  for (const name of Object.values(members).join(" ").split(" "))
    assert.ok(
      page.includes(`\`${name}\``) || page.includes(`\`${name}.`) || page.includes(`.${name}\``),
      name,
    );
});
