import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { rolloutState } from "../../src/rollout/state.ts";
import { hotpush } from "../harness/hotpush.ts";
import { pushTo, type RunningRole } from "../harness/machine.ts";
import { giveTo, makeSharedMachine } from "../harness/owners.ts";
import { needs } from "../harness/requirements.ts";
import { until } from "../harness/until.ts";

/** Of /health: what waits for a pipe waits for ever. */
const longestAnswerMs = 20_000;

const asRoot = needs("mount", "otherUser");

/** What a user can have in the place of a file; test/platform/foreign-files.test.ts has more of them. */
const kinds: Readonly<Record<string, (path: string, secret: string) => unknown>> = {
  "a named pipe": (path) => execFileSync("mkfifo", [path]),
  "a link to a file of root": (path, secret) => symlinkSync(secret, path),
  "a file of a terabyte": (path) => {
    writeFileSync(path, "");
    truncateSync(path, 2 ** 40);
  },
};

for (const [kind, plant] of Object.entries(kinds)) {
  test(`${kind} in every place of an owner holds up nothing, and root's files stay`, asRoot, async (t) => {
    const { service, alice, statePath, rootFile, addProject } = await startShared(t, "true");
    const plantAt = async (path: string) => {
      mkdirSync(dirname(path), { recursive: true });
      rmSync(path, { recursive: true, force: true });
      await plant(path, rootFile);
      if (existsSync(path)) lchownSync(path, alice.uid, alice.uid);
    };
    const health = followHealth(t, service);
    const rollout = join(statePath, "rollout");
    await pushTo(service, "alice");
    await service.log.waitForEnding(1);
    const beforeScript = [
      join(rollout, "deployment-2.json"),
      rolloutState(statePath, alice.repoPath).versionsPath,
      ...[".docker/config.json", ".git-credentials"].map((name) => join(alice.home, name)),
      ...[".env", ".env.production", "compose.yaml"].map((name) => join(alice.repoPath, name)),
    ];
    for (const path of beforeScript) await plantAt(path);
    for (const path of [rollout, alice.home]) giveTo(alice, path);
    await pushTo(service, "alice");
    assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
    // Git itself would wait for these, as their owner.
    for (const name of [".gitconfig", ".config/git/config"]) await plantAt(join(alice.home, name));
    await plantAt(join(alice.repoPath, ".git/config"));
    lchownSync(join(alice.repoPath, ".git"), alice.uid, alice.uid);
    addProject("alice", alice.repoPath, { DEPLOY_TIMEOUT: "5m" });
    await until(
      "the settings are read again",
      () => service.log.lines.filter(({ event }) => event === "project.read").length > 1,
    );
    for (const command of ["status", "history", "rollback"])
      await hotpush(service, command, "--project", "alice");
    const script = join(alice.repoPath, "deploy.sh");
    await plantAt(script);
    await pushTo(service, "alice");
    await service.log.waitForEnding(3);
    await health.end();
    assert.equal(readFileSync(rootFile, "utf8"), "of root\n");
  });
}

test(
  "an order to a roll-out is written into no directory of an owner, whatever is linked there",
  asRoot,
  async (t) => {
    const script = `
    [ "$DEPLOY_ID" = 1 ] || exit 0
    cd "$STATE_PATH" && mkdir -p rollout && cd rollout
    for name in 1 deployment-1.guard deployment-1; do ln -sf "$VICTIM" "$name"; done
    echo '{"liveAtMs":1790000000000,"requests":null,"isGuarding":true}' >deployment-1.json
    until [ -e "$HOTPUSH_ORDERS/1" ]; do sleep 0.02; done
    cat "$HOTPUSH_ORDERS/1"; echo
    ln -s "$VICTIM" "$HOTPUSH_ORDERS/2" 2>/dev/null || echo closed
    cd .. && rm -r rollout && ln -s "$(dirname "$VICTIM")" rollout
  `;
    const { service, statePath, rootFile } = await startShared(t, script);
    const report = join(dirname(rootFile), "deployment-1.json");
    writeFileSync(report, "of root\n");
    await pushTo(service, "alice");
    await until("it is guarded", () => existsSync(join(statePath, "rollout/deployment-1.json")));
    await pushTo(service, "alice");
    await service.log.waitForEnding(1);
    assert.deepEqual(service.log.outputOf(1), ["end", "closed"]);
    await service.log.waitForEnding(2);
    await service.end();
    assert.deepEqual(
      [rootFile, report].map((path) => readFileSync(path, "utf8")),
      ["of root\n", "of root\n"],
    );
    assert.deepEqual(readdirSync(dirname(rootFile)).sort(), ["deployment-1.json", "file"]);
  },
);

async function startShared(t: TestContext, script: string) {
  const machine = makeSharedMachine(t);
  const directory = join(machine.root, "of-root");
  mkdirSync(directory, { mode: 0o755 });
  /** Only root may read it, and the directory around it lets everybody through. */
  const rootFile = join(directory, "file");
  writeFileSync(rootFile, "of root\n", { mode: 0o600 });
  const alice = machine.addOwner("alice", script.replaceAll("$VICTIM", rootFile));
  const service = await machine.start();
  const statePath = join(machine.serverStatePath, "projects/alice");
  return { service, alice, statePath, rootFile, addProject: machine.addProject };
}

/** Asks /health all the time. `end` fails if an answer took too long, or was a bad one. */
function followHealth(t: TestContext, { port }: RunningRole) {
  const over = new AbortController();
  t.after(() => over.abort());
  const asking = (async () => {
    while (!over.signal.aborted) {
      const signal = AbortSignal.timeout(longestAnswerMs);
      assert.equal((await fetch(`http://127.0.0.1:${port}/health`, { signal })).status, 200);
      await sleep(20);
    }
  })();
  asking.catch(() => {});
  const end = () => {
    over.abort();
    return asking;
  };
  return { end };
}
