import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { testSecret } from "../harness/delivery.ts";
import { makeMachine } from "../harness/machine.ts";
import { readDeployments } from "../harness/records.ts";
import { git, makeProject } from "../harness/repository.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const names = Array.from({ length: 10 }, (_, index) => `p${index}`);
const pushesEach = 4;

/** Long enough that pushes wait, as a build does. */
const script = "#!/bin/sh\nset -e\ngit pull --quiet --ff-only origin main\nsleep 0.2\n";

/** What a git host does after a push: it sends a signed delivery. */
const relay = `import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
const [before, after, ref] = readFileSync(0, "utf8").trim().split(" ");
const body = JSON.stringify({ ref, before, after, deleted: false, repository: { full_name: "octo/app" } });
const signature = "sha256=" + createHmac("sha256", "${testSecret}").update(body).digest("hex");
const headers = { "content-type": "application/json", "x-github-event": "push", "x-hub-signature-256": signature };
const { status } = await fetch(process.argv[2], { method: "POST", headers, body });
if (status !== 202) throw new Error("answered with " + status);
`;

/** A project with a remote of its own that sends its pushes to `urlOf` it. */
function makeRemote(t: TestContext, name: string, relayPath: string) {
  const { remotePath, repoPath, script: writeDeploy } = makeProject(t);
  writeDeploy(script);
  const workPath = join(temporaryDirectory(t), "work");
  git("/", "clone", "--quiet", remotePath, workPath);
  const run = async (...args: readonly string[]) => {
    const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
    return (await promisify(execFile)("git", ["-C", workPath, ...identity, ...args])).stdout.trim();
  };
  return {
    name,
    repoPath,
    sendTo: (url: string) =>
      writeScript(
        join(remotePath, "hooks/post-receive"),
        `#!/bin/sh\nexec ${process.execPath} ${relayPath} ${url}\n`,
      ),
    async push() {
      await run("commit", "--quiet", "--allow-empty", "--message", "a change");
      await run("push", "--quiet", "origin", "main");
      return await run("rev-parse", "HEAD");
    },
  };
}

/** Those that waited through two turns of another project. */
function passedOver(all: readonly Deployment[]): readonly string[] {
  const runs = all.filter(({ startedAtMs }) => startedAtMs !== null);
  return names.flatMap((name) => {
    const starts = runs.filter(({ project }) => project === name).map(({ startedAtMs }) => startedAtMs ?? 0);
    return starts.slice(1).flatMap((start, index) => {
      const waits = ({ createdAtMs, startedAtMs, finishedAtMs }: Deployment) =>
        createdAtMs < (starts[index] ?? 0) && (startedAtMs ?? finishedAtMs ?? 0) > start;
      return all
        .filter((one) => one.project !== name && waits(one))
        .map(({ id, project }) => `${id} of ${project}, by two turns of ${name}`);
    });
  });
}

test("pushes to ten remotes at once: each is deployed once or superseded, in fair order", async (t) => {
  const machine = makeMachine(t);
  const relayPath = join(temporaryDirectory(t), "relay.mjs");
  writeFileSync(relayPath, relay);
  const remotes = names.map((name) => makeRemote(t, name, relayPath));
  for (const { name, repoPath } of remotes) machine.addProject(name, repoPath);
  await machine.start("run");
  const front = await machine.start("front");
  const statePath = machine.statePathOf("run");
  for (const remote of remotes) remote.sendTo(front.urlOf(remote.name));

  const pushed = await Promise.all(
    remotes.map(async ({ name, push }) => {
      const commits: string[] = [];
      for (let count = 0; count < pushesEach; count += 1) commits.push(await push());
      return [name, commits] as const;
    }),
  );
  const isOver = ({ finishedAtMs }: Deployment) => finishedAtMs !== null;
  const deployments = await until("all are over", () => {
    const all = readDeployments(statePath);
    return all.length >= names.length * pushesEach && all.every(isOver) && all;
  });

  for (const [name, commits] of pushed) {
    const own = deployments.filter(({ project }) => project === name);
    assert.deepEqual(
      own.map(({ commit }) => commit),
      commits,
      `${name}: one deployment for each push`,
    );
    const states = own.map(({ state }) => state);
    assert.ok(
      states.every((state) => ["succeeded", "superseded", "skipped"].includes(state)),
      `${name}: ${states}`,
    );
    // An earlier one may have deployed the newest commit already.
    assert.ok(["succeeded", "skipped"].includes(states.at(-1) ?? ""), `${name}: ${states}`);
    const { repoPath } = remotes.find((remote) => remote.name === name) ?? { repoPath: "" };
    assert.equal(git(repoPath, "rev-parse", "HEAD"), commits.at(-1));
  }
  assert.ok(
    deployments.some(({ state }) => state === "superseded"),
    "pushes waited",
  );
  assert.deepEqual(passedOver(deployments), []);
});
