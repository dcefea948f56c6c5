import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { compareVersions } from "../../src/platform/compose.ts";
import { githubPush, testSecret } from "../harness/delivery.ts";
import { type DoctorCheck, git as inPlace, makePlace, setSettings } from "../harness/doctor.ts";
import { freePort } from "../harness/listen.ts";
import { makeGpgKey, makeSshKey, type SigningKey } from "../harness/repository.ts";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { buildImage, removeImage } from "../lab/project.ts";

const image = `hotpush-image-test-${process.pid}`;
const largestMb = 520;

onEngine("Hotpush's image", (env) => {
  const docker = (...args: readonly string[]) =>
    execFileSync("docker", args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const inImage = (...command: readonly string[]) =>
    docker("run", "--rm", "--network=none", "--entrypoint=", image, ...command);

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

  for (const [what, command, oldest] of [
    ["git", ["git", "--version"], "2.40"],
    ["docker", ["docker", "--version"], "28.0"],
    ["compose", ["docker", "compose", "version"], "2.30"],
    ["buildx", ["docker", "buildx", "version"], "0.19"],
    ["node", ["node", "--version"], "24.0"],
  ] as const) {
    test(`has ${what} ${oldest} or newer`, () => {
      const answer = inImage(...command);
      const version = /\d+\.\d+(?:\.\d+)?/.exec(answer)?.[0] ?? "";
      assert.ok(compareVersions(version, oldest) >= 0, answer);
    });
  }

  test("verifies signatures of SSH and GPG keys with its own git, ssh-keygen and gpg", (t) => {
    const place = makePlace(t);
    const signersPath = join(place.root, "signers");
    setSettings(place, { ALLOWED_SIGNERS: signersPath });
    const ssh = makeSshKey(t);
    const gpg = makeGpgKey(t);
    const stranger = makeSshKey(t);
    const revoked = makeGpgKey(t);
    const push = (key: SigningKey | null) => {
      const options = key?.gitOptions ?? [];
      inPlace(place, ...options, "commit", "--quiet", "--allow-empty", "--message", "A change");
      inPlace(place, "push", "--quiet", "origin", "main");
    };
    const judged = (signers: string) => {
      writeFileSync(signersPath, signers, { mode: 0o644 });
      const mount = `${place.root}:${place.root}`;
      const run = ["run", "--rm", "--network=none", "--volume", mount, "--workdir", place.repoPath];
      const doctor = ["hotpush", "doctor", "signers", "--json", "--env-file", place.envFile];
      const report = docker(...run, "--entrypoint=", image, "sh", "-c", `${doctor.join(" ")} || true`);
      const [check] = (JSON.parse(report) as { readonly checks: readonly DoctorCheck[] }).checks;
      return check?.fact ?? check?.faults[0]?.text ?? "";
    };
    const both = `ada@example.com ${ssh.publicKey}\n${gpg.publicKey}`;
    push(null);
    assert.match(judged(both), /is not signed/);
    push(stranger);
    assert.match(judged(both), /a key that is not allowed \(ED25519 key SHA256:/);
    push(revoked);
    assert.match(judged(both), /a key that is not allowed \(GPG key /);
    assert.match(judged(revoked.revoke()), /a key that was revoked/);
    push(gpg);
    assert.match(judged(both), /is signed by Git Host <noreply@git\.example>$/);
    push(ssh);
    assert.match(judged(both), /is signed by ada@example\.com$/);
    const limited = (option: string) => judged(`ada@example.com ${option} ${ssh.publicKey}\n`);
    assert.match(limited('valid-before="20200101"'), /a key that is not valid now/);
    assert.match(limited('namespaces="file"'), /its line allows other namespaces than git/);
    writeFileSync(`${signersPath}.revoked`, `${ssh.publicKey}\n`);
    assert.match(judged(both), /a key that was revoked/);
  });

  test("has an ssh client, curl and setpriv, and neither npm nor files of apt", () => {
    for (const program of ["ssh", "curl", "setpriv", "tini"]) inImage("which", program);
    const left =
      "ls /usr/local/lib/node_modules /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/lib/apt/lists/* || true";
    assert.equal(inImage("sh", "-c", `{ ${left}; } 2>/dev/null`), "");
  });

  test("takes pushes without any privilege, and deploys from a container that shares only the spool", async (t) => {
    const place = makePlace(t);
    const [projects = "", spool = "", socket = ""] = ["projects", "spool", "socket"].map((name) =>
      join(place.root, name),
    );
    for (const path of [projects, spool, socket]) mkdirSync(path, { mode: 0o750 });
    chmodSync(projects, 0o755);
    chownSync(spool, 1000, 1000);
    chownSync(socket, 0, 1000);
    const settings = { REPO_PATH: place.repoPath, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: 0 };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(projects, "shop.env"), lines.join(""), { mode: 0o644 });
    chmodSync(place.root, 0o755);
    const port = await freePort();
    const start = (role: string, ...options: readonly string[]) => {
      const name = `${image}-${role}`;
      t.after(() => docker("rm", "--force", "--volumes", name));
      const shared = [`--volume=${projects}:/etc/hotpush/projects:ro`, `--volume=${spool}:/spool`];
      shared.push("--volume=/var/lib/hotpush", `--volume=${socket}:/run/hotpush`);
      const env = ["--env=PROJECTS_PATH=/etc/hotpush/projects", "--env=FRONT_SOCKET=/run/hotpush/front.sock"];
      env.push("--env=SPOOL_PATH=/spool/pushes");
      docker("run", "--detach", "--name", name, "--read-only", ...shared, ...env, ...options, image, role);
      return name;
    };
    const front = start(
      "front",
      "--user=1000:1000",
      "--cap-drop=ALL",
      "--security-opt=no-new-privileges",
      `--publish=127.0.0.1:${port}:9000`,
    );
    const run = start("run", "--network=none", "--tmpfs=/tmp", `--volume=${place.root}:${place.root}`);
    const healthOf = (name: string) => docker("inspect", "--format={{.State.Health.Status}}", name).trim();
    for (const name of [front, run]) await until(`${name} is healthy`, () => healthOf(name) === "healthy");

    const status = docker("exec", front, "cat", "/proc/1/status");
    for (const line of [/^Uid:\t1000\t/m, /^CapBnd:\t0+$/m, /^NoNewPrivs:\t1$/m]) assert.match(status, line);
    assert.throws(() => docker("exec", front, "touch", "/tmp/new"), /Read-only file system/);
    assert.throws(() => docker("exec", front, "ls", place.repoPath, "/var/run/docker.sock"), /No such file/);

    const commit = inPlace(place, "rev-parse", "HEAD");
    const delivery = { method: "POST", ...githubPush({ after: commit }) };
    const response = await fetch(`http://127.0.0.1:${port}/webhook/shop`, delivery);
    assert.equal(response.status, 202);
    assert.match(await response.text(), /"deployment":\{"id":1,/);
    await until("it is deployed", () => docker("logs", run).includes('"event":"deployment.succeeded"'));
  });
});
