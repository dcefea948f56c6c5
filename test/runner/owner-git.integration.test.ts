import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { githubPush } from "../harness/delivery.ts";
import { hotpushJson } from "../harness/hotpush.ts";
import { pushTo } from "../harness/machine.ts";
import { giveTo, makeSharedMachine, type Owner, type SharedMachine } from "../harness/owners.ts";
import { readDeployments } from "../harness/records.ts";
import { git, makeSshKey, type SigningKey } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { makeKey, sshUrl, startSshServer } from "../harness/sshd.ts";
import type { Scope } from "../harness/temporary.ts";

const overSsh = needs("mount", "otherUser", "sshd");

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
  await pushTo(service, "alice", githubPush({ after: signed }));
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  assert.equal(headOf(alice), signed);
  const objects = join(alice.repoPath, ".git/objects", signed.slice(0, 2), signed.slice(2));
  assert.equal(statSync(objects).uid, alice.uid);
  await pushTo(service, "alice", githubPush({ after: remote.push() }));
  await service.log.waitForEnding(2);
  const deployment = readDeployments(service.statePath).find(({ id }) => id === 2);
  assert.equal(deployment?.problem?.code, "commit_unsigned");
  assert.equal(headOf(alice), signed);
});

/** A bare repository behind a real sshd, that nobody may read yet. */
async function makeRemote(t: Scope, { root }: SharedMachine) {
  const bare = join(root, "remote.git");
  const work = join(root, "work");
  git(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  git(root, "clone", "--quiet", bare, work);
  git(work, "switch", "--quiet", "--orphan", "main");
  const sshd = await startSshServer(t, join(root, "ssh"));
  const push = (key?: SigningKey) => {
    git(work, ...(key?.gitOptions ?? []), "commit", "--quiet", "--allow-empty", "--message", "A change");
    git(work, "push", "--quiet", "origin", "main");
    return git(work, "rev-parse", "HEAD");
  };
  push();
  return {
    push,
    /** Makes the checkout of `owner` a clone, and gives the user a key. */
    clone(owner: Owner) {
      const { home, repoPath } = owner;
      giveTo({ uid: 0 }, repoPath);
      git(repoPath, "init", "--quiet", "--initial-branch=main");
      git(repoPath, "pull", "--quiet", bare, "main");
      git(repoPath, "remote", "add", "origin", sshUrl(sshd, bare));
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
