import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Delivery, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { pushTo, type RunningRole, waitsForGo } from "../harness/machine.ts";
import { giveTo, makeSharedMachine, type Owner, type SharedMachine } from "../harness/owners.ts";
import { readDeployments } from "../harness/records.ts";
import { git, makeProject, makeSshKey, type SigningKey } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { makeKey, sshUrl, startSshServer } from "../harness/sshd.ts";
import { type Scope, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const asRoot = needs("mount", "otherUser");
const overSsh = needs("mount", "otherUser", "sshd");

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
    giveTo({ uid: 0 }, machine.addOwner("shop", 'id -u; echo "$STATE_PATH"').repoPath);
    const service = await machine.start();
    assert.equal(await deployedBy(service, 1, "alice"), "deployment.succeeded");
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
    await deployedBy(service, 2, "shop");
    const ofRoot = join(machine.serverStatePath, "projects/shop");
    assert.deepEqual(service.log.outputOf(2), ["0", ofRoot]);
    assert.deepEqual(accessOf(ofRoot), { uid: 0, mode: 0o700 });
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
  await deployedBy(service, 1, "bob");
  for (const path of foreign) assert.ok(existsSync(path), path);
  assert.equal(await deployedBy(service, 2, "alice"), "deployment.succeeded");
  assert.deepEqual(service.log.outputOf(2), []);
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
  assert.equal(await deployedBy(service, 1, "shop"), "deployment.succeeded");
  assert.equal(existsSync(ranPath) ? readFileSync(ranPath, "utf8") : `${alice.uid}\n`, `${alice.uid}\n`);
});

test("without SERVER_STATE_PATH an owner's state is in that user's home", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const { home } = machine.addOwner("alice", 'echo "$STATE_PATH"; mkdir -p "$STATE_PATH"');
  const service = await machine.start({ env: { SERVER_STATE_PATH: "" } });
  assert.equal(await deployedBy(service, 1, "alice"), "deployment.succeeded");
  assert.deepEqual(service.log.outputOf(1), [join(home, ".local/state/hotpush")]);
});

test(
  "an owner who is unknown, or cannot enter or run the script, is a problem that says so",
  asRoot,
  async (t) => {
    const machine = makeSharedMachine(t);
    const alice = machine.addOwner("alice", "echo ran");
    machine.addOwner("bob", "echo ran");
    // Who is not in /etc/passwd has no name.
    const service = await machine.start({ known: [alice] });
    const logged = await service.log.waitFor(({ event }) => event === "script.unusable");
    assert.equal(logged.code, "owner_unusable");
    const script = join(alice.repoPath, "deploy.sh");
    chownSync(script, 0, 0);
    for (const [id, project, path, code] of [
      [1, "bob", script, "owner_unusable"],
      [2, "alice", script, "script_not_executable"],
      [3, "alice", join(machine.root, "srv"), "script_not_executable"],
    ] as const) {
      chmodSync(path, 0o700);
      await deployedBy(service, id, project);
      const deployment = readDeployments(service.statePath).find((one) => one.id === id);
      assert.equal(deployment?.problem?.code, code);
      assert.deepEqual(service.log.outputOf(id), []);
    }
  },
);

test("a checkout that changes hands is deployed as its new owner", asRoot, async (t) => {
  const machine = makeSharedMachine(t);
  const state = '"$STATE_PATH"/rollout';
  const alice = machine.addOwner("alice", `id -un; mkdir -p ${state}; echo good >>${state}/versions`);
  const bob = machine.addOwner("bob", "true");
  const service = await machine.start();
  await deployedBy(service, 1, "alice");
  const versions = join(machine.serverStatePath, "projects/alice/rollout/versions");
  giveTo(bob, alice.repoPath);
  await pushTo(service, "alice");
  const waits = await service.log.waitFor(({ event }) => event === "deployment.waits");
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
  const { code, stderr } = await hotpush(next, "cancel", "--project", "alice");
  assert.equal(code, 0, stderr);
  assert.equal((await next.log.waitForEnding(1)).event, "deployment.cancelled");
  await until("its processes are gone", () => idsOfAlice().length === 0);
});

/** Pushes to a project, and waits for the end of its deployment. @returns how it has ended */
async function deployedBy(service: RunningRole, id: number, project: string, delivery?: Delivery) {
  await pushTo(service, project, delivery);
  return (await service.log.waitForEnding(id)).event;
}

function accessOf(path: string) {
  const { uid, mode } = statSync(path);
  return { uid, mode: mode & 0o7777 };
}

test("git reaches the remote with the key of the owner", overSsh, async (t) => {
  const machine = makeSharedMachine(t);
  const remote = await makeRemote(t, machine);
  const alice = machine.addOwner("alice", "git pull --quiet origin main");
  // The remote does not know the key of this one.
  const bob = machine.addOwner("bob", "git pull --quiet origin main");
  for (const owner of [alice, bob]) remote.clone(owner);
  remote.accept(alice);
  const service = await machine.start();
  const after = remote.push();
  await pushTo(service, "alice", githubPush({ after }));
  await pushTo(service, "bob", githubPush({ after }));
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  const waits = await service.log.waitFor(({ event }) => event === "deployment.waits");
  assert.match(waits.msg ?? "", /^Deployment 2 waits: .*Permission denied/s);
  assert.equal(headOf(alice), after);
  assert.equal(statSync(join(alice.repoPath, ".git/FETCH_HEAD")).uid, alice.uid);
  // The service itself asks the remote as well.
  const asked = await hotpushJson<{ readonly deployment: { readonly commit: string } }>(
    service,
    "deploy",
    "--project",
    "alice",
    "--detach",
  );
  assert.equal(asked.deployment.commit, after);
});

test("a signature is verified out of the owner's reach", overSsh, async (t) => {
  const machine = makeSharedMachine(t);
  const remote = await makeRemote(t, machine);
  const key = makeSshKey(t);
  const signers = join(machine.root, "signers");
  writeFileSync(signers, `ada@example.com ${key.publicKey}\n`, { mode: 0o600 });
  const settings = { ALLOWED_SIGNERS: signers };
  const alice = machine.addOwner("alice", 'git checkout --quiet --detach "$DEPLOY_COMMIT"', settings);
  remote.clone(alice);
  remote.accept(alice);
  const service = await machine.start();
  const signed = remote.push(key);
  assert.equal(await deployedBy(service, 1, "alice", githubPush({ after: signed })), "deployment.succeeded");
  assert.equal(headOf(alice), signed);
  const objects = join(alice.repoPath, ".git/objects", signed.slice(0, 2), signed.slice(2));
  assert.equal(statSync(objects).uid, alice.uid);
  await deployedBy(service, 2, "alice", githubPush({ after: remote.push() }));
  const deployment = readDeployments(service.statePath).find(({ id }) => id === 2);
  assert.equal(deployment?.problem?.code, "commit_unsigned");
  assert.equal(headOf(alice), signed);
});

/** A bare repository behind a real sshd, that nobody may read yet. */
async function makeRemote(t: Scope, { root }: SharedMachine) {
  const { remotePath, push } = makeProject(t);
  const sshd = await startSshServer(t, join(root, "ssh"));
  return {
    push: (key?: SigningKey) => push("A change", {}, key),
    /** Makes the checkout of `owner` a clone, and gives the user a key. */
    clone(owner: Owner) {
      const { home, repoPath } = owner;
      giveTo({ uid: 0 }, repoPath);
      git(repoPath, "init", "--quiet", "--initial-branch=main");
      git(repoPath, "pull", "--quiet", remotePath, "main");
      git(repoPath, "remote", "add", "origin", sshUrl(sshd, remotePath));
      mkdirSync(join(home, ".ssh"), { mode: 0o700 });
      makeKey(join(home, ".ssh/id_ed25519"));
      const [type, hostKey] = readFileSync(`${sshd.hostKey}.pub`, "utf8").split(" ");
      writeFileSync(join(home, ".ssh/known_hosts"), `[127.0.0.1]:${sshd.port} ${type} ${hostKey}\n`);
      for (const path of [home, repoPath]) giveTo(owner, path);
    },
    accept({ home }: Owner) {
      writeFileSync(sshd.authorizedKeys, readFileSync(join(home, ".ssh/id_ed25519.pub")));
    },
  };
}

function headOf({ repoPath }: Owner): string {
  return git(repoPath, "-c", "safe.directory=*", "rev-parse", "HEAD");
}
