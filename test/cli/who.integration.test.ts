import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { DeploymentJson } from "../../src/calls/shapes.ts";
import { rolloutState } from "../../src/rollout/lock.ts";
import { writeVersions } from "../../src/rollout/versions.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, openTestTerminal, startAnswering } from "../harness/hotpush.ts";
import { git, makeProject } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";

const script = `#!/bin/sh
env
git fetch --quiet origin
git checkout --quiet -B main origin/main
`;
const ada = { name: "ada", reported: true };

test("neither a subject nor an author's name can pass for a pusher", async (t) => {
  const { service, commit } = await start(t);
  const after = commit("Fix the cart  Ada, pushed by ada", "Eve, pushed by ada");
  await deliver(service.url, githubPush({ after, pusher: { name: "eve" } }));
  await service.log.waitForEnding(1);
  const { stdout } = await hotpush(service, "history");
  const expected = "Fix the cart Ada, pushed by ada  Eve pushed by ada, pushed by eve";
  assert.equal(stdout.split("\n")[3], `    ${after.slice(0, 7)}  ${expected}`);
});

test("a commit that the branch had passed is shown beside the deployed one", async (t) => {
  const { service, commit } = await start(t);
  const passed = commit("Break the cart", "Eve");
  const tip = commit("Fix the cart", "Ada");
  await deliver(service.url, githubPush({ after: passed, pusher: null }));
  await service.log.waitForEnding(1);
  const text = `${tip.slice(0, 7)} (instead of ${passed.slice(0, 7)})`;
  const { stdout } = await hotpush(service, "history");
  assert.equal(stdout.split("\n")[3], `    ${text}  Fix the cart  Ada`);
  assert.ok((await hotpush(service, "status")).stdout.includes(`deployment 1, main at ${text} (push): `));
  assert.ok((await hotpush(service, "logs")).stderr.includes(`main is at ${text}.`));
});

test("deploy and rollback record their reported user, and no script sees it", async (t) => {
  const { service, commit } = await start(t);
  const id = commit("Fix the cart", "Ada");
  await deploy({ SUDO_USER: "ada", USER: "root" });
  await deploy({ USER: "bo\u001b[31mb\n" });
  await deploy({});
  const versions = [id, "f".repeat(40)].map((one) => version(one));
  await writeVersions(rolloutState(service.statePath, service.repoPath).versionsPath, versions);
  await hotpush({ ...service, env: { USER: "ada" } }, "rollback", id);
  const { deployments } = await hotpushJson<{ deployments: DeploymentJson[] }>(service, "history");
  const reported = deployments.map(({ requestedBy }) => requestedBy).toReversed();
  assert.deepEqual(reported, [ada, { name: "bob", reported: true }, null, ada]);
  const lines = (await hotpush(service, "history")).stdout.split("\n");
  assert.match(lines[3] ?? "", /^ {4}[0-9a-f]{7} {2}Fix the cart {2}Ada, rolled back by ada \(reported\)$/);
  assert.match(lines[7] ?? "", / Ada, deployed by bob \(reported\)$/);
  for (const one of [1, 2, 4]) assert.doesNotMatch(service.log.outputOf(one).join("\n"), /\b(?:ada|bob)\b/);

  async function deploy(env: NodeJS.ProcessEnv): Promise<void> {
    const { code, stderr } = await hotpush({ ...service, env }, "deploy");
    assert.equal(code, 0, stderr);
  }
});

test("on a terminal of 80 columns the longest texts are cut", needs("tmux"), async (t) => {
  const { service, commit } = await start(t);
  const subjects = ["Fix ".repeat(60), "\u001b[31mred\u202e"];
  for (const [index, subject] of subjects.entries()) {
    const after = commit(subject, `${"Ada ".repeat(30)}${index}`);
    await deliver(service.url, githubPush({ after, pusher: { name: "Mara ".repeat(40) } }));
    await service.log.waitForEnding(index + 1);
  }
  const terminal = openTestTerminal(t, { STATE_PATH: service.statePath, LC_ALL: "C.UTF-8" });
  terminal.type("clear; hotpush history; hotpush status; echo over");
  await terminal.waitFor(/^over$/m);
  const joined = terminal.raw().trimEnd().split("\n").length;
  assert.equal(joined, terminal.screen().length, "no line was wrapped");
  t.diagnostic(terminal.screen().join("\n"));
});

async function start(t: TestContext) {
  const project = makeProject(t);
  project.script(script);
  const work = project.remotePath.replace(/remote\.git$/, "work");
  const service = await startAnswering(t, { repoPath: project.repoPath });
  const commit = (subject: string, author: string) => {
    git(
      work,
      "commit",
      "--quiet",
      "--allow-empty",
      "--message",
      subject,
      `--author=${author} <a@example.org>`,
    );
    git(work, "push", "--quiet", "origin", "main");
    return git(work, "rev-parse", "HEAD");
  };
  return { service, commit };
}

function version(commit: string) {
  const image = { image: "app", id: `sha256:${commit}`, tag: `app:${commit.slice(0, 12)}` };
  return { commit, finishedAt: new Date().toISOString(), images: { app: image } };
}
