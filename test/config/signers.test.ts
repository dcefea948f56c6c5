import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { readSigners } from "../../src/config/project.ts";
import { makeSshKey } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const block = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n";

test("both kinds of keys are read from one file, with the fingerprints of ssh-keygen", (t) => {
  const { publicKey } = makeSshKey(t);
  const text = `# who\n"ada lovelace",*@example.com namespaces="git,file",valid-after="20200101" ${publicKey} laptop\n\n${block}\n${block}`;
  const signers = read(t, text);
  assert.ok(!("fault" in signers), inspect(signers));
  const path = join(temporaryDirectory(t), "key.pub");
  writeFileSync(path, `${publicKey}\n`);
  const listed = execFileSync("ssh-keygen", ["-l", "-f", path], { encoding: "utf8" });
  assert.equal(signers.ssh[0]?.fingerprint, listed.split(" ")[1]);
  assert.deepEqual([signers.ssh.length, signers.pgp.length], [1, 2]);
  assert.equal(signers.ssh[0]?.validFromMs, new Date("2020-01-01T00:00:00").getTime());
});

test("valid-before is read as ssh-keygen reads it", (t) => {
  for (const [value, instant] of [
    ["20300102", "2030-01-02T00:00:00"],
    ["203001020304", "2030-01-02T03:04:00"],
    ["20300102030405Z", "2030-01-02T03:04:05Z"],
  ] as const) {
    const signers = read(t, `ada valid-before="${value}" ${key}\n`);
    assert.ok(!("fault" in signers), inspect(signers));
    assert.equal(signers.ssh[0]?.validUntilMs, new Date(instant).getTime());
  }
});

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP5m0yB8p2dYdEXuwnfE6mQ8bV3t6Jm9m1cXk3oQ7w2A";
test("what is no list of keys is refused, with the line that is wrong", (t) => {
  for (const [text, says] of [
    ["\n# nobody\n", /which has no key: nothing could be deployed\.$/],
    [`${key}\n`, /whose line 1 is neither/],
    ["# x\nada ssh-ed25519 AAAA\n", /whose line 2 is neither/],
    [`ada ${key.replace("ssh-ed25519", "ssh-rsa")}\n`, /whose line 1 is neither/],
    [`ada valid-before="soon" ${key}\n`, /whose line 1 is neither/],
    ["-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n", /whose line 1 is neither/],
    [block.replace(/-----END.*/, ""), /whose line 1 is neither/],
  ] as const)
    assert.match(faultOf(read(t, text)), says);
});

test("a file in the repository is refused, also if a link leads to or from it", (t) => {
  const root = temporaryDirectory(t);
  const repoPath = join(root, "app");
  const outside = join(root, "signers");
  const inside = join(root, "app/signers");
  mkdirSync(repoPath);
  writeFileSync(inside, `ada ${key}\n`);
  symlinkSync(inside, outside);
  symlinkSync(repoPath, join(root, "link"));
  writeFileSync(join(root, "real"), `ada ${key}\n`);
  symlinkSync(join(root, "real"), join(repoPath, "leads-out"));
  for (const path of [inside, outside, join(root, "link/signers"), join(repoPath, "leads-out")]) {
    assert.match(faultOf(readSigners(path, repoPath)), /which is inside the repository/, path);
  }
  assert.equal(faultOf(readSigners(join(root, "real"), repoPath)), "");
  assert.match(faultOf(readSigners(join(root, "nowhere"), repoPath)), /cannot be read \(ENOENT\)\.$/);
});

function faultOf(read: ReturnType<typeof readSigners>): string {
  return "fault" in read ? read.fault : "";
}

function read(t: TestContext, text: string) {
  const directory = temporaryDirectory(t);
  const path = join(directory, "signers");
  writeFileSync(path, text);
  return readSigners(path, join(directory, "app"));
}
