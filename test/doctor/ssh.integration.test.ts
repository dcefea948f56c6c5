import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { makePlace, type Place, probe, runInShell } from "../harness/doctor.ts";
import { needs } from "../harness/requirements.ts";
import { makeKey, type Sshd, startSshd } from "../harness/sshd.ts";
import type { Scope } from "../harness/temporary.ts";

const withSshd = needs("sshd", "root");

/** A place with a remote over ssh, and everything right. */
async function makeSshPlace(t: Scope): Promise<{ readonly place: Place; readonly sshd: Sshd }> {
  const place = makePlace(t);
  const sshd = await startSshd(t, place);
  mkdirSync(dirname(sshd.key), { mode: 0o700 });
  makeKey(sshd.key);
  writeFileSync(sshd.authorizedKeys, readFileSync(`${sshd.key}.pub`));
  const [type, key] = readFileSync(`${sshd.hostKey}.pub`, "utf8").split(" ");
  writeFileSync(sshd.knownHosts, `[127.0.0.1]:${sshd.port} ${type} ${key}\n`);
  return { place, sshd };
}

async function outcomes(place: Place, ...ids: readonly string[]): Promise<readonly string[]> {
  return Promise.all(ids.map(async (id) => (await probe(place, id)).outcome));
}

test("remote: an unknown host is found and fixed, and its fingerprint is printed", withSshd, async (t) => {
  const { place, sshd } = await makeSshPlace(t);
  rmSync(sshd.knownHosts);
  assert.deepEqual(await outcomes(place, "remote", "branch"), ["faulty", "skipped"]);
  const { faults } = await probe(place, "remote");
  const { stdout } = await runInShell(place, faults[0]?.command ?? "false");
  assert.match(stdout, /^256 SHA256:\S+ \[127\.0\.0\.1\]:\d+ \(ED25519\)$/m);
  assert.deepEqual(await outcomes(place, "remote", "branch"), ["ok", "ok"]);
});

test("remote: a host with another key than before is found and fixed", withSshd, async (t) => {
  const { place, sshd } = await makeSshPlace(t);
  makeKey(`${sshd.hostKey}.before`);
  const [type, key] = readFileSync(`${sshd.hostKey}.before.pub`, "utf8").split(" ");
  writeFileSync(sshd.knownHosts, `[127.0.0.1]:${sshd.port} ${type} ${key}\n`);
  const { faults } = await probe(place, "remote");
  const ended = await runInShell(place, faults[0]?.command ?? "false");
  assert.equal(ended.exitCode, 0, ended.stderr);
  assert.ok(!readFileSync(sshd.knownHosts, "utf8").includes(key ?? "none"), "the old key is forgotten");
  assert.deepEqual(await outcomes(place, "remote"), ["ok"]);
});

test("remote: without a key, the command makes one and prints its public half", withSshd, async (t) => {
  const { place, sshd } = await makeSshPlace(t);
  for (const path of [sshd.key, `${sshd.key}.pub`, sshd.authorizedKeys]) rmSync(path);
  const { faults } = await probe(place, "remote");
  const { stdout } = await runInShell(place, faults[0]?.command ?? "false");
  assert.match(stdout, /^ssh-ed25519 /);
  // In place of the form "Deploy keys" at the git host.
  appendFileSync(sshd.authorizedKeys, stdout);
  assert.deepEqual(await outcomes(place, "remote"), ["ok"]);
});

test("remote: a key that the git host does not know is printed for its form", withSshd, async (t) => {
  const { place, sshd } = await makeSshPlace(t);
  rmSync(sshd.authorizedKeys);
  const { faults } = await probe(place, "remote");
  const { stdout } = await runInShell(place, faults[0]?.command ?? "false");
  assert.equal(stdout.split(" ")[1], readFileSync(`${sshd.key}.pub`, "utf8").split(" ")[1]);
  writeFileSync(sshd.authorizedKeys, stdout);
  assert.deepEqual(await outcomes(place, "remote"), ["ok"]);
});
