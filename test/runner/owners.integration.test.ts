import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { hotpush, untilAnswering } from "../harness/hotpush.ts";
import { pushTo, waitsForGo } from "../harness/machine.ts";
import { giveTo, makeSharedMachine } from "../harness/owners.ts";
import { readDeployments } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const asRoot = needs("mount", "otherUser");

test(
  "a script and its secrets' commands run as the owner of the checkout, with all groups",
  asRoot,
  async (t) => {
    const machine = makeSharedMachine(t);
    const print = [
      "id -u; id -g; id -G",
      'echo "$HOME $USER $LOGNAME"',
      'echo "$STATE_PATH"',
      'echo "$BUILDX_CONFIG"',
      "grep CapEff /proc/self/status",
      'echo "to /dev/stderr" >/dev/stderr',
      'echo own >"$DEPLOY_LOG" && echo "$DEPLOY_LOG"',
      'echo "$WHO"; touch built',
    ];
    const alice = machine.addOwner("alice", print.join("\n"));
    writeFileSync(join(machine.secretsPath, "alice.env"), "WHO=!id -u\n", { mode: 0o600 });
    const service = await machine.start();
    await pushTo(service, "alice");
    assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
    const { uid, home } = alice;
    const own = join(machine.temporaryPath, `hotpush-${uid}`);
    const [user, group, groups, ...rest] = service.log.outputOf(1);
    assert.deepEqual([user, group], [String(uid), String(uid)]);
    assert.deepEqual(groups?.split(" ").map(Number).sort(), [uid, machine.dockerGid, machine.commonGid]);
    assert.deepEqual(rest, [
      `${home} alice alice`,
      join(machine.serverStatePath, "projects/alice"),
      join(own, "buildx"),
      "CapEff: 0000000000000000",
      "to /dev/stderr",
      join(own, "deploy-1.log"),
      String(uid),
    ]);
    assert.equal(statSync(join(alice.repoPath, "built")).uid, uid);
    assert.deepEqual(accessOf(join(machine.serverStatePath, "projects/alice")), { uid, mode: 0o700 });
    assert.deepEqual(accessOf(own), { uid, mode: 0o700 });
  },
);

test("a script cannot read what belongs to other projects or to the service", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const bob = machine.addOwner("bob", "echo 'the log of bob' >\"$DEPLOY_LOG\"");
  const secretsFile = join(machine.secretsPath, "bob.env");
  writeFileSync(secretsFile, "TOKEN=secret\n", { mode: 0o600 });
  const foreign = [
    join(bob.home, "key"),
    secretsFile,
    join(machine.projectsPath, "bob.env"),
    join(machine.statePath, "hotpush.db"),
    join(machine.statePath, "projects/bob/logs/1.log"),
    join(machine.temporaryPath, `hotpush-${bob.uid}/deploy-1.log`),
    join(machine.serverStatePath, "projects/bob/."),
  ];
  const look = foreign.map((path) => `ls '${path}' >/dev/null 2>&1 && cat '${path}' && echo 'read ${path}'`);
  machine.addOwner("alice", [...look, "true"].join("\n"));
  const service = await machine.start();
  await pushTo(service, "bob");
  await service.log.waitForEnding(1);
  for (const path of foreign) assert.ok(existsSync(path), path);
  await pushTo(service, "alice");
  assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
  assert.deepEqual(service.log.outputOf(2), []);
});

test("a script of root's checkout runs as root, with a state of its own", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const owner = machine.addOwner("shop", 'id -u; echo "$STATE_PATH"');
  giveTo({ uid: 0 }, owner.repoPath);
  const service = await machine.start();
  await pushTo(service, "shop");
  await service.log.waitForEnding(1);
  const statePath = join(machine.serverStatePath, "projects/shop");
  assert.deepEqual(service.log.outputOf(1), ["0", statePath]);
  assert.deepEqual(accessOf(statePath), { uid: 0, mode: 0o700 });
});

test("a checkout of root that another user could exchange is never run as root", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const alice = machine.addOwner("alice", "true");
  const ranPath = join(machine.temporaryPath, "ran");
  const repoPath = join(alice.home, "shop");
  mkdirSync(repoPath);
  writeScript(join(repoPath, "deploy.sh"), `#!/bin/sh\nid -u >>${ranPath}\n`);
  machine.addProject("shop", repoPath);
  const service = await machine.start();
  await pushTo(service, "shop");
  await service.log.waitForEnding(1);
  assert.equal(existsSync(ranPath) ? readFileSync(ranPath, "utf8") : `${alice.uid}\n`, `${alice.uid}\n`);
});

test("without SERVER_STATE_PATH an owner's state is in that user's home", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const { home } = machine.addOwner("alice", 'echo "$STATE_PATH"; mkdir -p "$STATE_PATH"');
  const service = await machine.start({ env: { SERVER_STATE_PATH: "" } });
  await pushTo(service, "alice");
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  assert.deepEqual(service.log.outputOf(1), [join(home, ".local/state/hotpush")]);
});

test("an owner who is not in /etc/passwd is a problem that says what to do", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  machine.addOwner("alice", "echo ran");
  const service = await machine.start({ known: [] });
  const logged = await service.log.waitFor(({ event }) => event === "script.unusable");
  assert.equal(logged.code, "owner_unusable");
  await pushTo(service, "alice");
  await service.log.waitForEnding(1);
  const [deployment] = readDeployments(service.statePath);
  assert.equal(deployment?.problem?.code, "owner_unusable");
  assert.deepEqual(service.log.outputOf(1), []);
});

test("a checkout that its owner cannot enter or run is a problem that says so", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const alice = machine.addOwner("alice", "echo ran");
  const script = join(alice.repoPath, "deploy.sh");
  const service = await machine.start();
  chownSync(script, 0, 0);
  for (const [id, path, mode] of [
    [1, script, 0o700],
    [2, join(machine.root, "srv"), 0o700],
  ] as const) {
    chmodSync(path, mode);
    await pushTo(service, "alice");
    await service.log.waitForEnding(id);
    const deployment = readDeployments(service.statePath).find((one) => one.id === id);
    assert.equal(deployment?.problem?.code, "script_not_executable");
  }
});

test("a checkout that changes hands is deployed as its new owner", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const state = '"$STATE_PATH"/rollout';
  const alice = machine.addOwner("alice", `id -un; mkdir -p ${state}; echo good >>${state}/versions`);
  const bob = machine.addOwner("bob", "true");
  const service = await machine.start();
  await pushTo(service, "alice");
  await service.log.waitForEnding(1);
  const versions = join(machine.serverStatePath, "projects/alice/rollout/versions");
  giveTo(bob, alice.repoPath);
  await pushTo(service, "alice");
  const waits = await service.log.waitFor(({ event }) => event === "deployment.not_started");
  assert.match(waits.msg ?? "", /Run: chown -R \d+:\d+ \S+projects\/alice/);
  giveTo(bob, join(machine.serverStatePath, "projects/alice"));
  assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
  assert.deepEqual([...service.log.outputOf(1), ...service.log.outputOf(2)], ["alice", "bob"]);
  assert.equal(readFileSync(versions, "utf8"), "good\ngood\n");
  assert.equal(statSync(versions).uid, bob.uid);
});

test("a script of another user is adopted and cancelled, and its children with it", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const alice = machine.addOwner("alice", `sleep 600 &\necho begin\n${waitsForGo}`);
  const idsOfAlice = () =>
    spawnSync("pgrep", ["--uid", String(alice.uid)], { encoding: "utf8" })
      .stdout.split("\n")
      .filter(Boolean);
  t.after(() => idsOfAlice().map((pid) => process.kill(Number(pid), "SIGKILL")));
  const service = await machine.start();
  await pushTo(service, "alice");
  await service.log.waitFor(({ msg }) => msg === "begin");
  await service.end("SIGKILL");
  assert.ok(idsOfAlice().length > 0);
  const next = await machine.start();
  await next.log.waitFor(({ event }) => event === "deployment.adopted");
  await untilAnswering(next);
  const { code, stderr } = await hotpush(next, "cancel", "--project", "alice");
  assert.equal(code, 0, stderr);
  assert.equal((await next.log.waitForEnding(1)).event, "deployment.cancelled");
  await until("its processes are gone", () => idsOfAlice().length === 0);
});

function accessOf(path: string) {
  const { uid, mode } = statSync(path);
  return { uid, mode: mode & 0o7777 };
}
