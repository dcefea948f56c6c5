import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { deployScript } from "../examples/project.ts";
import { deliver, githubPush, type WebhookReply } from "../harness/delivery.ts";
import { hotpush, startAnswering } from "../harness/hotpush.ts";
import { listenHere } from "../harness/listen.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeGpgKey, makeSshKey, type SigningKey } from "../harness/repository.ts";
import { letGo, type RunningService, spawnService } from "../harness/service.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** Writes what the script received. */
const restart = { "restart.sh": '#!/bin/sh\necho "$DEPLOY_COMMIT" >"$REPO_PATH/received"\n' };

test("a tip signed by an allowed SSH key is deployed, and exactly that commit", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  writeFileSync(join(project.workPath, "restart.sh"), "", { mode: 0o755 });
  const commit = project.push(project.key, restart);
  const ended = await deployPush(service, commit);
  assert.deepEqual([ended.state, ended.problem], ["succeeded", null]);
  assert.equal(project.head(), commit);
  assert.equal(readFileSync(join(project.repoPath, "received"), "utf8"), `${commit}\n`);
  const verified = service.log.lines.find(({ event }) => event === "deployment.verified");
  assert.deepEqual([verified?.commit, verified?.signer], [commit, "ada@example.com"]);
  assert.equal(existsSync(join(service.statePath, "signers")), false);
});

test("an unsigned tip is refused before any of it runs", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const before = project.head();
  const refs = git(project.repoPath, "for-each-ref");
  const ended = await deployPush(service, project.push(null));
  assert.deepEqual([ended.state, ended.problem?.code], ["failed", "commit_unsigned"]);
  assert.match(ended.problem?.detail ?? "", /is not signed\. ALLOWED_SIGNERS is .* Sign it and push again/);
  assert.equal(project.head(), before);
  assert.equal(git(project.repoPath, "for-each-ref"), refs);
});

test("a tip signed by an unknown key is refused, and the key is named", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const ssh = makeSshKey(t);
  const gpg = makeGpgKey(t);
  const bySsh = await deployPush(service, project.push(ssh));
  assert.equal(bySsh.problem?.code, "signer_unknown");
  assert.match(bySsh.problem?.detail ?? "", /ED25519 key SHA256:/);
  const byGpg = await deployPush(service, project.push(gpg));
  assert.equal(byGpg.problem?.code, "signer_unknown");
  assert.match(byGpg.problem?.detail ?? "", /GPG key [0-9A-F]{16}/);
});

test("a merge signed with GPG by the git host is deployed, beside SSH keys in one file", async (t) => {
  const project = makeSignedProject(t);
  const host = makeGpgKey(t);
  project.allow(`# people\nada@example.com ${project.key.publicKey}\n\n${host.publicKey}`);
  const service = await startSigned(t, project);
  git(project.workPath, "switch", "--quiet", "--create", "topic");
  git(project.workPath, "commit", "--quiet", "--allow-empty", "--message", "Unsigned work");
  git(project.workPath, "switch", "--quiet", "main");
  git(project.workPath, ...host.gitOptions, "merge", "--quiet", "--no-ff", "-m", "Merge", "topic");
  git(project.workPath, "push", "--quiet", "origin", "main");
  const merge = git(project.workPath, "rev-parse", "HEAD");
  const ended = await deployPush(service, merge);
  assert.deepEqual([ended.state, project.head()], ["succeeded", merge]);
  const verified = service.log.lines.find(({ event }) => event === "deployment.verified");
  assert.equal(verified?.signer, "Git Host <noreply@git.example>");
});

test("an expired key is refused, even if the commit claims an earlier date", async (t) => {
  const project = makeSignedProject(t);
  project.allow(`ada@example.com valid-before="20210101" ${project.key.publicKey}\n`);
  const service = await startSigned(t, project);
  const name = "GIT_COMMITTER_DATE";
  const value = process.env.GIT_COMMITTER_DATE;
  process.env[name] = "2020-06-01T00:00:00Z";
  const commit = project.push(project.key);
  if (value === undefined) delete process.env[name];
  const ended = await deployPush(service, commit);
  assert.equal(ended.problem?.code, "signer_expired");
});

test("a revoked key is refused, of SSH and of GPG", async (t) => {
  const project = makeSignedProject(t);
  const gpg = makeGpgKey(t);
  const byGpg = project.push(gpg);
  project.allow(`ada@example.com ${project.key.publicKey}\n${gpg.revoke()}`);
  const service = await startSigned(t, project);
  assert.equal((await deployPush(service, byGpg)).problem?.code, "signer_revoked");
  writeFileSync(`${project.signersPath}.revoked`, `${project.key.publicKey}\n`);
  assert.equal((await deployPush(service, project.push(project.key))).problem?.code, "signer_revoked");
});

test("a key that may not sign commits is refused", async (t) => {
  const project = makeSignedProject(t);
  project.allow(`ada@example.com namespaces="file" ${project.key.publicKey}\n`);
  const service = await startSigned(t, project);
  const ended = await deployPush(service, project.push(project.key));
  assert.equal(ended.problem?.code, "signer_unknown");
  assert.match(ended.problem?.detail ?? "", /its line allows other namespaces than git/);
});

test("a commit changed after it was signed is refused", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const signed = git(project.workPath, "cat-file", "commit", project.push(project.key));
  const forged = execFileSync(
    "git",
    ["-C", project.workPath, "hash-object", "-t", "commit", "-w", "--stdin"],
    {
      encoding: "utf8",
      input: `${signed.replace("A change", "Another")}\n`,
    },
  ).trim();
  git(project.workPath, "push", "--quiet", "--force", "origin", `${forged}:main`);
  const ended = await deployPush(service, forged);
  assert.equal(ended.problem?.code, "signature_bad");
});

test("a force push to an older signed commit is refused, unless deployed by hand", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const older = project.head();
  const newer = project.push(project.key);
  assert.equal((await deployPush(service, newer)).state, "succeeded");
  git(project.workPath, "push", "--quiet", "--force", "origin", `${older}:main`);
  const ended = await deployPush(service, older);
  assert.equal(ended.problem?.code, "branch_diverged");
  assert.match(
    ended.problem?.detail ?? "",
    /does not descend from .* If that is intended: hotpush deploy main/,
  );
  assert.equal(project.head(), newer);
  const byHand = await hotpush(service, "deploy", "main");
  assert.equal(byHand.code, 0, byHand.stdout);
  assert.equal(project.head(), older);
});

test("an unsigned commit is refused when deployed by hand as well", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  project.push(null);
  const { code, stdout } = await hotpush(service, "deploy");
  assert.equal(code, 1);
  assert.match(stdout, /is not signed/);
});

test("a script that checks out another commit fails its deployment", async (t) => {
  const project = makeSignedProject(t);
  const script = "#!/bin/sh\ngit pull --quiet origin main\ngit checkout --quiet --detach HEAD~1\n";
  const before = project.push(project.key, { "deploy.sh": script });
  git(project.repoPath, "pull", "--quiet");
  const service = await startSigned(t, project);
  const commit = project.push(project.key);
  const ended = await deployPush(service, commit);
  assert.deepEqual([ended.state, ended.problem?.code], ["failed", "other_commit_deployed"]);
  assert.ok(ended.problem?.detail.includes(`${before.slice(0, 7)} is checked out`), ended.problem?.detail);
});

test("of a push that is not in the branch any more, the head is verified and deployed", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const base = git(project.workPath, "rev-parse", "HEAD");
  const aside = project.push(project.key);
  git(project.workPath, "push", "--quiet", "--force", "origin", `${base}:main`);
  const ended = await deployPush(service, aside);
  assert.deepEqual([ended.checkedOutCommit, project.head()], [base, base]);
});

test("settings, replacements and keys of the repository weaken nothing", async (t) => {
  const project = makeSignedProject(t);
  const stranger = makeSshKey(t);
  const service = await startSigned(t, project);
  const own = join(project.repoPath, "own-signers");
  const liar = join(project.repoPath, "liar");
  writeFileSync(own, `* ${stranger.publicKey}\n`);
  writeScript(
    liar,
    "#!/bin/sh\necho 'Good \"git\" signature for ada@example.com with ED25519 key SHA256:x'\n",
  );
  for (const [name, value] of [
    ["gpg.ssh.allowedSignersFile", own],
    ["gpg.ssh.program", liar],
  ] as const) {
    git(project.repoPath, "config", name, value);
    assert.equal((await deployPush(service, project.push(stranger))).problem?.code, "signer_unknown", name);
  }
  const commit = project.push(stranger);
  git(project.repoPath, "fetch", "--quiet");
  git(project.repoPath, "replace", commit, project.head());
  assert.equal((await deployPush(service, commit)).problem?.code, "signer_unknown");
  assert.equal(
    readDeployments(service.statePath).every(({ state }) => state === "failed"),
    true,
  );
});

test("the commit of an adopted script is compared as well", async (t) => {
  const project = makeSignedProject(t);
  const script =
    '#!/bin/sh\ngit pull --quiet origin main\ngit checkout --quiet --detach HEAD~1\nwhile [ -d "$REPO_PATH" ] && [ ! -e go ]; do sleep 0.02; done\n';
  project.push(project.key, { "deploy.sh": script });
  git(project.repoPath, "pull", "--quiet");
  const first = await startSigned(t, project);
  await deliver(first.url, githubPush({ after: project.push(project.key) }));
  await first.log.waitFor(({ event }) => event === "deployment.started");
  await first.end("SIGKILL");
  letGo(project.repoPath);
  const second = await first.again();
  const ended = await untilDeployment(second.statePath, 1, ({ state }) => state !== "running");
  assert.deepEqual([ended.state, ended.problem?.code], ["failed", "other_commit_deployed"]);
});

test("the service exits with 78 if it cannot use the file of keys", async (t) => {
  const project = makeSignedProject(t);
  for (const [path, says] of [
    [join(project.repoPath, "signers"), "which is inside the repository"],
    [join(project.workPath, "nowhere"), "which cannot be read (ENOENT)"],
    [project.signersPath, "which has no key"],
  ] as const) {
    if (!path.endsWith("nowhere")) writeFileSync(path, "");
    const statePath = temporaryDirectory(t);
    const env = { ALLOWED_SIGNERS: path };
    const { child, log } = spawnService(t, { env, statePath, repoPath: project.repoPath });
    const [exitCode] = await once(child, "close");
    assert.equal(exitCode, 78);
    assert.ok(log.otherText.join("\n").includes(`hotpush: ALLOWED_SIGNERS is "${path}", ${says}`));
  }
});

test("a service stopped while the remote does not answer leaves the deployment queued", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const port = await listenHere(t, createServer());
  git(project.repoPath, "remote", "set-url", "origin", `http://127.0.0.1:${port}/shop.git`);
  await deliver(service.url, githubPush({ after: project.push(project.key) }));
  const isRunning = () => readDeployments(service.statePath)[0]?.state === "running";
  await until("the deployment has begun", isRunning);
  const startMs = performance.now();
  assert.equal(await service.end(), 0);
  assert.ok(performance.now() - startMs < 10_000);
  const [deployment] = readDeployments(service.statePath);
  assert.deepEqual([deployment?.state, deployment?.attempts], ["queued", 0]);
});

/** A project whose commits must be signed: a remote, a clone to push from, and the checkout that is deployed. */
interface SignedProject {
  readonly remotePath: string;
  readonly workPath: string;
  readonly repoPath: string;
  readonly signersPath: string;
  /** The key that is allowed at first. */
  readonly key: SigningKey;
  /** Commits `files`, signed with `key` unless it is null, and pushes. @returns the commit */
  readonly push: (key: SigningKey | null, files?: Readonly<Record<string, string>>) => string;
  /** Replaces the file of allowed keys. */
  readonly allow: (text: string) => void;
  readonly head: () => string;
}

/** Makes one with the example's deploy.sh and a signed first commit. */
function makeSignedProject(scope: Scope): SignedProject {
  const root = temporaryDirectory(scope);
  const at = (name: string) => join(root, name);
  const remotePath = at("remote.git");
  const workPath = at("work");
  const repoPath = at("app");
  const signersPath = at("signers");
  git(root, "init", "--quiet", "--bare", "--initial-branch=main", remotePath);
  git(root, "clone", "--quiet", remotePath, workPath);
  git(workPath, "switch", "--quiet", "--orphan", "main");
  const push: SignedProject["push"] = (key, files = {}) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(workPath, name), text);
    git(workPath, "add", "--all");
    git(workPath, ...(key?.gitOptions ?? []), "commit", "--quiet", "--allow-empty", "--message", "A change");
    git(workPath, "push", "--quiet", "--force", "origin", "main");
    return git(workPath, "rev-parse", "HEAD");
  };
  const key = makeSshKey(scope);
  copyFileSync(deployScript, join(workPath, "deploy.sh"));
  push(key);
  git(root, "clone", "--quiet", remotePath, repoPath);
  const allow = (text: string) => writeFileSync(signersPath, text);
  allow(`ada@example.com ${key.publicKey}\n`);
  const head = () => git(repoPath, "rev-parse", "HEAD");
  return { remotePath, workPath, repoPath, signersPath, key, push, allow, head };
}

/** Starts a service that deploys only signed commits. */
function startSigned(scope: Scope, { repoPath, signersPath }: SignedProject): Promise<RunningService> {
  return startAnswering(scope, {
    repoPath,
    env: { ALLOWED_SIGNERS: signersPath, DEPLOY_RETRY_PAUSES: "0", DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" },
  });
}

/** Delivers the push of `after` and waits for the end of its deployment. */
async function deployPush(service: RunningService, after: string) {
  const reply: WebhookReply = await deliver(service.url, githubPush({ after }));
  const id = reply.json.deployment?.id ?? 0;
  return await untilDeployment(service.statePath, id, ({ state }) => !["queued", "running"].includes(state));
}
