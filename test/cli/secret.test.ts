import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseEnv } from "node:util";
import { testSecret } from "../harness/delivery.ts";
import { commandEnvironment, hotpush, launcher } from "../harness/hotpush.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** The settings of a service, with a secret among them. */
const settings = `# the settings of Hotpush
REPO_PATH=/srv/app
WEBHOOK_SECRET="${testSecret}" # of the form
LOG_LEVEL=info`;

/** A `.env` with `content` in a new directory, and that directory as the working directory of commands. */
function envFile(t: TestContext, content: string) {
  const cwd = temporaryDirectory(t);
  const path = join(cwd, ".env");
  writeFileSync(path, content);
  chmodSync(path, 0o600);
  return { path, target: { statePath: join(cwd, "none"), cwd }, read: () => readFileSync(path, "utf8") };
}

test("a rotation keeps the old secret as previous one, all other lines, and the mode", async (t) => {
  const { path, target, read } = envFile(t, settings);
  const { code, stdout, stderr } = await hotpush(target, "secret", "rotate");
  assert.deepEqual([code, stderr], [0, ""]);
  const { WEBHOOK_SECRET: secret = "" } = parseEnv(read());
  assert.match(secret, /^[0-9a-f]{64}$/);
  assert.equal(
    read(),
    settings.replace(
      /WEBHOOK_SECRET=(.*)\n([\s\S]*)/,
      `WEBHOOK_SECRET=${secret}\n$2\nWEBHOOK_SECRET_PREVIOUS=$1\n`,
    ),
  );
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(target.cwd), [".env"]);
  assert.ok(!stdout.includes(secret) && !stdout.includes(testSecret), "piped, it shows no secret");
  assert.equal((await hotpush(target, "secret", "rotate")).code, 1, "the rotation is not finished");
  assert.equal((await hotpush(target, "secret", "drop-previous", "--force")).code, 0);
  assert.equal(read(), `${settings.replace(/WEBHOOK_SECRET=(.*)/, `WEBHOOK_SECRET=${secret}`)}\n`);
});

test("a rotation makes a secret that GitLab takes, if it is GitLab's", async (t) => {
  const token = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;
  for (const content of [`${settings}\nHOTPUSH_GIT_HOST=gitlab\n`, `WEBHOOK_SECRET=${token}\n`]) {
    const { target, read } = envFile(t, content);
    assert.equal((await hotpush(target, "secret", "rotate")).code, 0);
    assert.match(parseEnv(read()).WEBHOOK_SECRET ?? "", /^whsec_[\w+/]{43}=$/);
  }
});

for (const [what, content, args = []] of [
  ["no secret", "REPO_PATH=/srv/app\n"],
  ["no such file", settings, ["--env-file", "no.env"]],
  ["a secret in a file of its own", "WEBHOOK_SECRET_FILE=/run/secrets/hotpush\n"],
  ["a previous secret already", `${settings}\nWEBHOOK_SECRET_PREVIOUS=still used by a form\n`],
] as const)
  test(`a rotation with ${what} is refused, and changes nothing`, async (t) => {
    const { target, read } = envFile(t, content);
    assert.equal((await hotpush(target, "secret", "rotate", ...args)).code, 1);
    assert.equal(read(), content);
  });

test("--stdin takes the secret that the git host made, if the file can hold it", (t) => {
  const rows = [
    ["whsec_dGhlIHRva2VuIHRoYXQgR2l0TGFiIG1hZGU=", "whsec_dGhlIHRva2VuIHRoYXQgR2l0TGFiIG1hZGU="],
    // Compose and Node read it differently without quotes.
    ["abc#def$ghijklmnopq", "'abc#def$ghijklmnopq'"],
    ["abc'def ghijklmnopq", null],
    [testSecret, null],
    ["", null],
  ] as const;
  for (const [secret, written] of rows) {
    const { target, read } = envFile(t, settings);
    const options = { cwd: target.cwd, env: commandEnvironment(target), input: `${secret}\n` };
    const { status, stdout } = spawnSync(launcher, ["secret", "rotate", "--stdin"], options);
    assert.equal(status, written === null ? 1 : 0, secret);
    assert.ok(secret === "" || !String(stdout).includes(secret));
    if (written === null) assert.equal(read(), settings);
    else assert.ok(read().includes(`\nWEBHOOK_SECRET=${written}\n`), read());
  }
});

test("root rotates no secret in the directory of another user", needs("root"), async (t) => {
  const { target, read } = envFile(t, settings);
  chownSync(target.cwd, 12, 34);
  assert.equal((await hotpush(target, "secret", "rotate")).code, 1);
  assert.equal(read(), settings);
});
