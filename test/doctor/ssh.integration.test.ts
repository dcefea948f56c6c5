import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { deployKeyPath } from "../../src/platform/git.ts";
import { type DoctorCheck, makePlace, type Place, probe, runInShell } from "../harness/doctor.ts";
import { execute, noServer } from "../harness/hotpush.ts";
import { inOwnEtc } from "../harness/mounts.ts";
import { giveTo, makeSharedMachine } from "../harness/owners.ts";
import { needs } from "../harness/requirements.ts";
import { mainPath } from "../harness/service.ts";
import { makeKey, type Sshd, sshUrl, startSshd, startSshServer } from "../harness/sshd.ts";
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

function outcomes(place: Place): Promise<readonly string[]> {
  return Promise.all(["remote", "branch"].map(async (id) => (await probe(place, id)).outcome));
}

/** What is wrong with an ssh remote, and what the printed command must say; null: it prints what the host's form takes. */
const broken: Readonly<Record<string, readonly [breakIt: (sshd: Sshd) => void, says: RegExp | null]>> = {
  "an unknown host is learned, and its fingerprint printed": [
    ({ knownHosts }) => rmSync(knownHosts),
    /^256 SHA256:\S+ \[127\.0\.0\.1\]:\d+ \(ED25519\)$/m,
  ],
  "the key of a host that has changed is replaced": [
    ({ hostKey, knownHosts, port }) => {
      makeKey(`${hostKey}.before`);
      const [type, key] = readFileSync(`${hostKey}.before.pub`, "utf8").split(" ");
      writeFileSync(knownHosts, `[127.0.0.1]:${port} ${type} ${key}\n`);
    },
    /^256 SHA256:/m,
  ],
  "without a key, one is made, and its public half printed": [
    ({ key, authorizedKeys }) => {
      for (const path of [key, `${key}.pub`, authorizedKeys]) rmSync(path);
    },
    null,
  ],
  "a key that the git host does not know is printed": [({ authorizedKeys }) => rmSync(authorizedKeys), null],
};

for (const [what, [breakIt, says]] of Object.entries(broken))
  test(`remote: ${what}`, withSshd, async (t) => {
    const { place, sshd } = await makeSshPlace(t);
    breakIt(sshd);
    assert.deepEqual(await outcomes(place), ["faulty", "skipped"]);
    const { faults } = await probe(place, "remote");
    const { stdout, code, stderr } = await runInShell(place, faults[0]?.command ?? "false");
    assert.equal(code, 0, stderr);
    assert.match(stdout, says ?? /^ssh-ed25519 /);
    // In place of the form "Deploy keys" at the git host.
    if (says === null) writeFileSync(sshd.authorizedKeys, stdout);
    assert.deepEqual(await outcomes(place), ["ok", "ok"]);
  });

test(
  "remote: a deploy key that its owner cannot read is made anew by hotpush connect",
  withSshd,
  async (t) => {
    const { place, sshd } = await makeSshPlace(t);
    rmSync(sshd.authorizedKeys);
    symlinkSync("/nowhere/key", deployKeyPath(place.repoPath));
    const { faults } = await probe(place, "remote");
    assert.match(faults[0]?.command ?? "", /&& hotpush connect$/);
  },
);

test(
  "remote: root fixes the access of another user, whose files stay that user's",
  needs("sshd", "mount"),
  async (t) => {
    const { root, projectsPath, addOwner } = makeSharedMachine(t);
    const { name, uid, home, repoPath } = addOwner("ada", "true");
    const { remotePath } = makePlace(t);
    const sshd = await startSshServer(t, join(root, "ssh"));
    giveTo({ uid: 0 }, repoPath);
    execFileSync("git", ["init", "--quiet", repoPath]);
    execFileSync("git", ["-C", repoPath, "remote", "add", "origin", sshUrl(sshd, remotePath)]);
    giveTo({ uid }, repoPath);
    const known = `echo ${name}:x:${uid}:${uid}::${home}:/usr/sbin/nologin >>/etc/passwd`;
    const asRoot = async (...argv: readonly string[]) => {
      const [program = "", ...args] = [...inOwnEtc(t, [known]), ...argv];
      const env = {
        PATH: process.env.PATH,
        HOME: join(root, "home"),
        ...noServer,
        PROJECTS_PATH: projectsPath,
      };
      return await execute(program, args, { cwd: "/", env });
    };
    const faultOf = async (id: string) => {
      const { stdout } = await asRoot(process.execPath, mainPath, "doctor", id, "--json");
      const { checks }: { readonly checks: readonly DoctorCheck[] } = JSON.parse(stdout);
      return checks[0]?.faults[0] ?? null;
    };
    const fix = async (id: string, says: RegExp) => {
      const { code, stdout } = await asRoot("sh", "-c", (await faultOf(id))?.command ?? "false");
      assert.equal(code, 0, stdout);
      return says.exec(stdout)?.[0] ?? assert.fail(stdout);
    };
    await fix("remote", /^256 SHA256:/m);
    writeFileSync(sshd.authorizedKeys, await fix("remote", /^ssh-ed25519 \S+/m));
    await fix("deploy-script", /^/);
    for (const id of ["remote", "deploy-script"]) assert.equal(await faultOf(id), null);
    assert.deepEqual(readdirSync(join(home, ".ssh")), ["id_ed25519", "id_ed25519.pub", "known_hosts"]);
    const foreign = [home, repoPath, "!", "-user", String(uid)];
    assert.equal(execFileSync("find", foreign, { encoding: "utf8" }), "");
  },
);
