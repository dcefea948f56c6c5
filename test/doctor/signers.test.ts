import assert from "node:assert/strict";
import { chmodSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { git, makePlace, probe, runInShell, setSettings } from "../harness/doctor.ts";
import { makeGpgKey, makeSshKey, type SigningKey } from "../harness/repository.ts";

test("signers: a newest commit signed by SSH or by GPG passes", async (t) => {
  const { place, allow, push } = makeSignedPlace(t);
  const [ssh, gpg] = [makeSshKey(t), makeGpgKey(t)];
  allow(`ada@example.com ${ssh.publicKey}\n${gpg.publicKey}`);
  push(ssh);
  assert.match((await probe(place, "signers")).fact ?? "", /^[0-9a-f]{7} is signed by ada@example\.com$/);
  push(gpg);
  assert.match((await probe(place, "signers")).fact ?? "", /is signed by Git Host/);
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

test("signers: skipped without ALLOWED_SIGNERS", async (t) => {
  assert.equal((await probe(makePlace(t), "signers")).outcome, "skipped");
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
