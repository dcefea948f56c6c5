import assert from "node:assert/strict";
import { chmodSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { git, makePlace, probe, runInShell, setSettings } from "../harness/doctor.ts";
import { startTarget } from "../harness/listen.ts";
import { makeGpgKey, makeSshKey, type SigningKey } from "../harness/repository.ts";

test("signers: a newest commit signed by SSH or by GPG passes", async (t) => {
  const { place, allow, push } = makeSignedPlace(t);
  const ssh = makeSshKey(t);
  const gpg = makeGpgKey(t);
  allow(`ada@example.com ${ssh.publicKey}\n${gpg.publicKey}`);
  push(ssh);
  assert.equal((await probe(place, "signers")).outcome, "ok");
  push(gpg);
  assert.equal((await probe(place, "signers")).outcome, "ok");
  assert.deepEqual(readdirSync(place.temporaryPath), []);
});

test("signers: a newest commit that is unsigned or signed by a stranger is a problem", async (t) => {
  const { place, allow, push } = makeSignedPlace(t);
  allow(`ada@example.com ${makeSshKey(t).publicKey}\n`);
  const unsigned = await probe(place, "signers");
  assert.deepEqual([unsigned.outcome, unsigned.faults[0]?.severity], ["faulty", "problem"]);
  push(makeSshKey(t));
  assert.equal((await probe(place, "signers")).outcome, "faulty");
});

test("signers: a file that others can write is a warning, with the command that fixes it", async (t) => {
  const { place, allow, path, push } = makeSignedPlace(t);
  const key = makeSshKey(t);
  allow(`ada@example.com ${key.publicKey}\n`);
  push(key);
  chmodSync(path, 0o666);
  const [fault] = (await probe(place, "signers")).faults;
  assert.deepEqual([fault?.severity, fault?.command], ["warning", `chmod go-w ${path}`]);
  await runInShell(place, fault?.command ?? "false");
  assert.equal((await probe(place, "signers")).outcome, "ok");
});

test("signers, commit-status: skipped without ALLOWED_SIGNERS and COMMIT_STATUS_URL", async (t) => {
  const place = makePlace(t);
  for (const id of ["signers", "commit-status"]) assert.equal((await probe(place, id)).outcome, "skipped");
});

for (const [what, status, mode, outcome] of [
  ["with the rights passes", 404, 0o600, "ok"],
  ["that may only read is a warning, which does not show it", 403, 0o600, "faulty"],
  ["that other users can read is a warning, and is not used", 404, 0o644, "faulty"],
] as const)
  test(`commit-status: a token ${what}`, async (t) => {
    const { url, requests } = await startTarget(t, (response, { method }) => {
      response.writeHead(method === "GET" ? 200 : status).end("{}");
    });
    const place = makePlace(t);
    const path = join(place.root, "token");
    writeFileSync(path, "a-token-of-gitea\n");
    chmodSync(path, mode);
    setSettings(place, { COMMIT_STATUS_URL: `gitea+${url}/octo/app`, COMMIT_STATUS_TOKEN_FILE: path });
    const found = await probe(place, "commit-status");
    assert.equal(found.outcome, outcome);
    assert.ok(!JSON.stringify(found).includes("a-token-of-gitea"));
    assert.equal(requests.length === 0, mode === 0o644);
  });

for (const [what, status, severity] of [
  ["reads the checks that DEPLOY_AFTER awaits passes", 200, undefined],
  ["may not read the checks that DEPLOY_AFTER awaits is a problem", 403, "problem"],
] as const)
  test(`commit-status: a token that ${what}`, async (t) => {
    const { url } = await startTarget(t, (response, { method, path }) => {
      const isOfChecks = path.includes("/commits/");
      response.writeHead(isOfChecks ? status : method === "GET" ? 200 : 404).end('{"statuses":null}');
    });
    const place = makePlace(t);
    const path = join(place.root, "token");
    writeFileSync(path, "a-token-of-gitea\n", { mode: 0o600 });
    const settings = { COMMIT_STATUS_URL: `gitea+${url}/octo/app`, COMMIT_STATUS_TOKEN_FILE: path };
    setSettings(place, { ...settings, DEPLOY_AFTER: "checks" });
    assert.equal((await probe(place, "commit-status")).faults[0]?.severity, severity);
  });

function makeSignedPlace(t: TestContext) {
  const place = makePlace(t);
  const path = join(place.root, "signers");
  setSettings(place, { ALLOWED_SIGNERS: path });
  const push = (key: SigningKey) => {
    git(place, ...key.gitOptions, "commit", "--quiet", "--allow-empty", "--message", "A change");
    git(place, "push", "--quiet", "origin", "main");
  };
  return { place, path, push, allow: (text: string) => writeFileSync(path, text, { mode: 0o644 }) };
}
