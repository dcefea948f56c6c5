import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type DoctorCheck, git as inPlace, makePlace, setSettings } from "../harness/doctor.ts";
import { pack } from "../harness/package.ts";
import { makeGpgKey, makeSshKey } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { onEngine } from "../lab/on-engine.ts";
import { buildImage, removeImage } from "../lab/project.ts";

const image = `hotpush-image-test-${process.pid}`;
/** On the disk: containerd's store counts blocks, an older one bytes, which are 2% fewer. */
const largestMb = 550;

onEngine("Hotpush's image", (env) => {
  const docker = (...args: readonly string[]) =>
    execFileSync("docker", args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  before(() => buildImage(env, image));
  after(() => removeImage(env, image));

  test(`takes at most ${largestMb} MB with all its layers`, (t) => {
    const layers = docker("history", "--human=false", "--format={{.Size}}", image)
      .trim()
      .split("\n")
      .map(Number);
    const mb = layers.reduce((sum, size) => sum + size, 0) / 1_000_000;
    t.diagnostic(`${mb.toFixed(0)} MB`);
    assert.ok(mb > 100 && mb <= largestMb, `${mb} MB`);
  });

  test("verifies signatures of SSH and GPG keys with its own git, ssh-keygen and gpg", (t) => {
    const place = makePlace(t);
    const signersPath = join(place.root, "signers");
    setSettings(place, { ALLOWED_SIGNERS: signersPath });
    const ssh = makeSshKey(t);
    const gpg = makeGpgKey(t);
    writeFileSync(signersPath, `ada@example.com ${ssh.publicKey}\n${gpg.publicKey}`, { mode: 0o644 });
    const judged = (...options: readonly string[]) => {
      inPlace(place, ...options, "commit", "--quiet", "--allow-empty", "--message", "A change");
      inPlace(place, "push", "--quiet", "origin", "main");
      const mount = `${place.root}:${place.root}`;
      const run = ["run", "--rm", "--network=none", "--volume", mount, "--workdir", place.repoPath];
      const doctor = ["hotpush", "doctor", "signers", "--json"];
      const report = docker(...run, "--entrypoint=", image, "sh", "-c", `${doctor.join(" ")} || true`);
      const [check] = (JSON.parse(report) as { readonly checks: readonly DoctorCheck[] }).checks;
      return check?.fact ?? check?.faults[0]?.text ?? "";
    };
    assert.match(judged(), /is not signed/);
    assert.match(judged(...makeSshKey(t).gitOptions), /a key that is not allowed \(ED25519 key SHA256:/);
    assert.match(judged(...makeGpgKey(t).gitOptions), /a key that is not allowed \(GPG key /);
    assert.match(judged(...gpg.gitOptions), /is signed by Git Host <noreply@git\.example>$/);
    assert.match(judged(...ssh.gitOptions), /is signed by ada@example\.com$/);
  });

  test("is built from the npm package, too", (t) => {
    const directory = temporaryDirectory(t);
    execFileSync("tar", ["-xzf", pack(directory).filename], { cwd: directory });
    const tag = `${image}-of-package`;
    t.after(() => removeImage(env, tag));
    docker("build", "--quiet", "--tag", tag, join(directory, "package"));
    assert.match(docker("run", "--rm", tag, "--version"), /^\d+\.\d+\.\d+/);
  });
});
