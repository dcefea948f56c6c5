import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { deployScript } from "../examples/project.ts";
import { deliver, githubPush, type WebhookReply } from "../harness/delivery.ts";
import { hotpush } from "../harness/hotpush.ts";
import { listenHere } from "../harness/listen.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import {
  git,
  makeGpgKey,
  makeProject,
  makeSshCertificate,
  makeSshKey,
  type SigningKey,
} from "../harness/repository.ts";
import { letGo, type RunningService, startService } from "../harness/service.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** Writes what the script received. */
const restart = { "restart.sh": '#!/bin/sh\necho "$DEPLOY_COMMIT" >"$REPO_PATH/received"\n' };

test("a tip signed by an allowed SSH key is deployed, and exactly that commit", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const commit = project.push(project.key, restart);
  const ended = await deployPush(service, commit);
  assert.deepEqual([ended.state, ended.problem], ["succeeded", null]);
  assert.equal(project.head(), commit);
  assert.equal(readFileSync(join(project.repoPath, "received"), "utf8"), `${commit}\n`);
  const verified = service.log.lines.find(({ event }) => event === "deployment.verified");
  assert.deepEqual([verified?.commit, verified?.signer], [commit, "ada@example.com"]);
  assert.equal(existsSync(join(service.statePath, "signers")), false);
  const { payload } = JSON.parse((await hotpush(service, "receipt", String(ended.id))).stdout);
  const { predicate } = JSON.parse(Buffer.from(payload, "base64").toString());
  assert.deepEqual([predicate.commit, predicate.signer], [commit, "ada@example.com"]);
});

test("a commit is refused unless it has a good signature of a key that may sign it now", async (t) => {
  const project = makeSignedProject(t);
  const { key, push, allow, signersPath, repoPath } = project;
  const gpg = makeGpgKey(t);
  const service = await startSigned(t, project);
  const before = [project.head(), git(repoPath, "for-each-ref")];
  const allowOwn = (option: string, more = "") =>
    allow(`ada@example.com ${option} ${key.publicKey}\n${more}`);
  const cases: readonly (readonly [code: string, signer: SigningKey | null, prepare?: () => void])[] = [
    ["commit_unsigned", null],
    ["signer_unknown", makeSshKey(t)],
    ["signer_unknown", gpg],
    ["signer_unknown", key, () => allowOwn('namespaces="file"')],
    ["signer_revoked", gpg, () => allowOwn("", gpg.revoke())],
    ["signer_revoked", key, () => writeFileSync(`${signersPath}.revoked`, `${key.publicKey}\n`)],
  ];
  for (const [index, [code, signer, prepare]] of cases.entries()) {
    const commit = push(signer);
    prepare?.();
    const ended = await deployPush(service, commit);
    assert.deepEqual([ended.state, ended.problem?.code], ["failed", code], `case ${index}`);
  }
  assert.equal((await hotpush(service, "deploy")).code, 1, "not by hand either");
  assert.deepEqual([project.head(), git(repoPath, "for-each-ref")], before);
});

test("an expired key is refused, even if the commit claims an earlier date, and so is a forged commit", async (t) => {
  const project = makeSignedProject(t);
  const { workPath, key, push, allow } = project;
  const service = await startSigned(t, project);
  const signed = git(workPath, "cat-file", "commit", push(key));
  const input = `${signed.replace("A change", "Another")}\n`;
  const options = { encoding: "utf8", input } as const;
  const hash = ["-C", workPath, "hash-object", "-t", "commit", "-w", "--stdin"];
  const forged = execFileSync("git", hash, options).trim();
  git(workPath, "push", "--quiet", "--force", "origin", `${forged}:main`);
  assert.equal((await deployPush(service, forged)).problem?.code, "signature_bad");
  allow(`ada@example.com valid-before="20210101" ${key.publicKey}\n`);
  const early = dated("2020-06-01T00:00:00Z", () => push(key));
  assert.equal((await deployPush(service, early)).problem?.code, "signer_expired");
});

test("an SSH certificate counts at the time the service hears of a commit, whatever date the commit has", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const expired = makeSshCertificate(t, "20200101:20210101");
  const future = makeSshCertificate(t, "20800101:20810101");
  const valid = makeSshCertificate(t, "-1d:+1d");
  const authorities = [expired, future, valid].map(
    ({ authority }) => `ada@example.com cert-authority ${authority}\n`,
  );
  project.allow(authorities.join(""));
  const commitAt = (date: string, signer: Pick<SigningKey, "gitOptions">) =>
    dated(date, () => project.push({ publicKey: "", ...signer }));
  for (const [date, certificate] of [
    ["2020-06-01T00:00:00Z", expired],
    ["2080-06-01T00:00:00Z", future],
  ] as const) {
    const { state, problem } = await deployPush(service, commitAt(date, certificate));
    assert.deepEqual([state, problem?.code], ["failed", "signer_unknown"], date);
  }
  for (const date of ["2020-06-01T00:00:00Z", "2080-06-01T00:00:00Z"])
    assert.equal((await deployPush(service, commitAt(date, valid))).state, "succeeded", date);
  writeFileSync(`${project.signersPath}.revoked`, `${valid.authority}\n`);
  const revoked = await deployPush(service, project.push({ publicKey: "", ...valid }));
  assert.deepEqual([revoked.state, revoked.problem?.code], ["failed", "signer_revoked"]);
});

test("a key that expires after its commit was heard of lets it be deployed again, and no other", async (t) => {
  const project = makeSignedProject(t);
  const { key, push, allow } = project;
  const service = await startSigned(t, project);
  const commit = push(key);
  assert.equal((await deployPush(service, commit)).state, "succeeded");
  const untilMs = Math.ceil(Date.now() / 1_000 + 1) * 1_000;
  const limit = new Date(untilMs).toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  allow(`ada@example.com valid-before="${limit}" ${key.publicKey}\n`);
  // ssh-keygen counts whole seconds, and the last one is still valid.
  await until("the key has expired", () => Date.now() > untilMs + 1_000);
  assert.equal((await hotpush(service, "deploy")).code, 0);
  const later = dated("2020-06-01T00:00:00Z", () => push(key));
  const ended = await deployPush(service, later);
  assert.deepEqual([ended.state, ended.problem?.code], ["failed", "signer_expired"]);
});

test("a signed commit with a header that git leaves out of what is signed is refused", async (t) => {
  const project = makeSignedProject(t);
  const { workPath, key, push } = project;
  const service = await startSigned(t, project);
  push(key);
  const signed = git(workPath, "cat-file", "commit", push(key));
  const [, signature = ""] = /^(gpgsig(?:.*\n )*.*\n)/m.exec(signed) ?? [];
  const changed = [
    signed.replace(signature, `${signature}gpgsigx one more\n`),
    signed.replace(signature, `gpgsig-sha256 one more\n${signature}`),
    signed.replace(signature, "").replace(/^parent/m, `${signature}parent`),
  ];
  for (const input of changed) {
    const options = { encoding: "utf8", input: `${input}\n` } as const;
    const hash = ["-C", workPath, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"];
    const commit = execFileSync("git", hash, options).trim();
    git(workPath, "push", "--quiet", "--force", "origin", `${commit}:main`);
    assert.equal((await deployPush(service, commit)).problem?.code, "signature_bad", input);
  }
  assert.equal((await deployPush(service, push(key))).state, "succeeded");
});

test("a file of revoked keys that cannot count is a fault", async (t) => {
  const project = makeSignedProject(t);
  const { key, push, signersPath } = project;
  const service = await startSigned(t, project);
  symlinkSync("nothing", `${signersPath}.revoked`);
  assert.equal((await deployPush(service, push(key))).problem?.code, "signers_unusable");
  rmSync(`${signersPath}.revoked`);
  writeFileSync(`${signersPath}.revoked`, makeGpgKey(t).publicKey);
  assert.equal((await deployPush(service, push(key))).problem?.code, "signers_unusable");
});

test("a commit too large to verify is refused", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const message = join(temporaryDirectory(t), "message");
  writeFileSync(message, `Large\n\n${"x".repeat(99)}\n`.repeat(11_000));
  const { workPath, key } = project;
  git(workPath, ...key.gitOptions, "commit", "--quiet", "--allow-empty", "--file", message);
  git(workPath, "push", "--quiet", "origin", "HEAD:main");
  const ended = await deployPush(service, git(workPath, "rev-parse", "HEAD"));
  assert.deepEqual([ended.state, ended.problem?.code], ["failed", "signers_unusable"]);
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

test("a force push to an older signed commit is refused, unless deployed by hand", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const older = project.head();
  const newer = project.push(project.key);
  assert.equal((await deployPush(service, newer)).state, "succeeded");
  git(project.workPath, "push", "--quiet", "--force", "origin", `${older}:main`);
  const { state, skipReason, problem } = await deployPush(service, older);
  assert.deepEqual([state, skipReason, problem?.code], ["failed", null, "branch_diverged"]);
  assert.equal(project.head(), newer);
  const byHand = await hotpush(service, "deploy", "main");
  assert.equal(byHand.code, 0, byHand.stdout);
  assert.equal(project.head(), older);
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
  assert.ok(readDeployments(service.statePath).every(({ state }) => state === "failed"));
});

test("a script that checks out another commit fails its deployment, also if it is adopted", async (t) => {
  const project = makeSignedProject(t);
  const script =
    '#!/bin/sh\ngit pull --quiet origin main\ngit checkout --quiet --detach HEAD~1\nwhile [ -d "$REPO_PATH" ] && [ ! -e go ]; do sleep 0.02; done\n';
  const before = project.push(project.key, { "deploy.sh": script });
  git(project.repoPath, "pull", "--quiet");
  const first = await startSigned(t, project);
  await deliver(first.url, githubPush({ after: project.push(project.key) }));
  await first.log.waitFor(({ event }) => event === "deployment.started");
  await first.end("SIGKILL");
  letGo(project.repoPath);
  const second = await first.again();
  const ended = await untilDeployment(second.statePath, 1, ({ state }) => state !== "running");
  assert.deepEqual([ended.state, ended.problem?.code], ["failed", "other_commit_deployed"]);
  assert.ok(ended.problem?.detail.includes(`${before.slice(0, 7)} is checked out`), ended.problem?.detail);
});

test("a service stopped while the remote does not answer leaves the deployment queued", async (t) => {
  const project = makeSignedProject(t);
  const service = await startSigned(t, project);
  const port = await listenHere(t, createServer());
  git(project.repoPath, "remote", "set-url", "origin", `http://127.0.0.1:${port}/shop.git`);
  await deliver(service.url, githubPush({ after: project.push(project.key) }));
  const isRunning = () => readDeployments(service.statePath)[0]?.state === "running";
  await until("the deployment has begun", isRunning);
  assert.equal(await service.end(), 0);
  const [deployment] = readDeployments(service.statePath);
  assert.deepEqual([deployment?.state, deployment?.attempts], ["queued", 0]);
});

type SignedProject = ReturnType<typeof makeSignedProject>;

/** A project whose commits must be signed, by the only key that is allowed, with the example's deploy.sh. */
function makeSignedProject(scope: Scope) {
  const { repoPath, workPath, push: pushCommit } = makeProject(scope);
  const signersPath = join(temporaryDirectory(scope), "signers");
  const key = makeSshKey(scope);
  const push = (signer: SigningKey | null, files?: Readonly<Record<string, string>>) =>
    pushCommit("A change", files, signer);
  rmSync(join(repoPath, "deploy.sh"));
  push(key, { "deploy.sh": readFileSync(deployScript, "utf8") });
  git(repoPath, "pull", "--quiet");
  /** Replaces the file of allowed keys. */
  const allow = (text: string) => writeFileSync(signersPath, text);
  allow(`ada@example.com ${key.publicKey}\n`);
  const head = () => git(repoPath, "rev-parse", "HEAD");
  return { workPath, repoPath, signersPath, key, push, allow, head };
}

/** Starts a service that deploys only signed commits. */
function startSigned(scope: Scope, { repoPath, signersPath }: SignedProject): Promise<RunningService> {
  return startService(scope, {
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

/** Does `work` while git takes `date` for the committer's. */
function dated<Result>(date: string, work: () => Result): Result {
  const { GIT_COMMITTER_DATE: before } = process.env;
  process.env.GIT_COMMITTER_DATE = date;
  try {
    return work();
  } finally {
    if (before === undefined) delete process.env.GIT_COMMITTER_DATE;
    else process.env.GIT_COMMITTER_DATE = before;
  }
}
