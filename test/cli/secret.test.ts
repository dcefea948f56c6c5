import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { deliver, githubPush, testSecret } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { envFile, rotateTo, settings } from "./env-file.ts";

test("a rotation keeps the old secret as previous one, all other lines, and the mode", async (t) => {
  const { path, target } = envFile(t, settings);
  const { code, stdout, stderr } = await hotpush(target, "secret", "rotate");
  assert.deepEqual([code, stderr], [0, ""]);
  const written = readFileSync(path, "utf8");
  const secret = /^WEBHOOK_SECRET=([0-9a-f]{64})$/m.exec(written)?.[1] ?? "";
  assert.equal(
    written,
    settings.replace(/WEBHOOK_SECRET=(.*)/, `WEBHOOK_SECRET=${secret}\nWEBHOOK_SECRET_PREVIOUS=$1`),
  );
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(target.cwd), [".env"]);
  assert.ok(!stdout.includes(secret) && !stdout.includes(testSecret), "piped, it shows no secret");
  assert.match(stdout, /First restart the service.*field Secret to:\n {2}what is in \.env now/s);
});

test("--show prints the new secret and never the old one", async (t) => {
  const { path, target } = envFile(t, settings);
  const { stdout } = await hotpush(target, "secret", "rotate", "--show");
  const secret = /^WEBHOOK_SECRET=(\w{64})$/m.exec(readFileSync(path, "utf8"))?.[1] ?? "none";
  assert.ok(stdout.includes(`\n  ${secret}\n`) && !stdout.includes(testSecret));
});

test("a second rotation does not discard a previous secret that may be in use", async (t) => {
  const { path, target } = envFile(t, `${settings}\nWEBHOOK_SECRET_PREVIOUS=still used by a form\n`);
  const before = readFileSync(path, "utf8");
  const { code, stderr } = await hotpush(target, "secret", "rotate");
  assert.equal(code, 1);
  assert.match(stderr, /an earlier rotation is not finished/);
  assert.equal(readFileSync(path, "utf8"), before);
  assert.equal((await hotpush(target, "secret", "rotate", "--force")).code, 0);
  assert.match(
    readFileSync(path, "utf8"),
    new RegExp(`^WEBHOOK_SECRET_PREVIOUS="${testSecret}" # of the form$`, "m"),
  );
});

test("a rotation keeps a link a link", async (t) => {
  const { path, target } = envFile(t, settings);
  const cwd = temporaryDirectory(t);
  symlinkSync(path, join(cwd, ".env"));
  assert.equal((await hotpush({ ...target, cwd }, "secret", "rotate")).code, 0);
  assert.match(readFileSync(path, "utf8"), /WEBHOOK_SECRET_PREVIOUS=/);
});

test("a missing file, a missing secret and an empty new secret change nothing", async (t) => {
  const { path, target } = envFile(t, "REPO_PATH=/srv/app\n");
  assert.match((await hotpush(target, "secret", "rotate")).stderr, /does not set WEBHOOK_SECRET.*--env/);
  assert.match(
    (await hotpush(target, "secret", "rotate", "--env-file", "no.env")).stderr,
    /no\.env cannot be read \(ENOENT\)/,
  );
  writeFileSync(path, settings);
  const empty = rotateTo("", target.cwd);
  assert.match(empty.stderr, /^hotpush: WEBHOOK_SECRET is empty/);
  assert.equal(readFileSync(path, "utf8"), settings);
});

test("every option that a refusal names exists", async (t) => {
  const { stdout: help } = await hotpush(envFile(t, settings).target, "secret", "rotate", "--help");
  const refused = [
    envFile(t, "REPO_PATH=/srv/app\n").target,
    { ...envFile(t, settings).target, cwd: temporaryDirectory(t) },
    envFile(t, `${settings}\nWEBHOOK_SECRET_PREVIOUS=still used by a form\n`).target,
  ];
  for (const target of refused) {
    const { code, stderr } = await hotpush(target, "secret", "rotate");
    assert.equal(code, 1);
    const named = stderr.match(/(?<=\s)--[a-z][\w-]*/g) ?? [];
    assert.notDeepEqual(named, [], stderr);
    for (const option of named) assert.match(help, new RegExp(`^  ${option}(?: |$)`, "m"), stderr);
  }
});

test("without a .env here, the one of the repository is used", async (t) => {
  const { path, target } = envFile(t, settings);
  const elsewhere = { ...target, cwd: temporaryDirectory(t), env: { REPO_PATH: target.cwd } };
  const { code, stdout, stderr } = await hotpush(elsewhere, "secret", "rotate");
  assert.equal(code, 0, stderr);
  assert.ok(stdout.includes(`The new secret is in ${path}.`), stdout);
  assert.equal((await hotpush(elsewhere, "secret", "drop-previous", "--force")).code, 0);
  const here = envFile(t, settings);
  assert.equal((await hotpush({ ...elsewhere, cwd: here.target.cwd }, "secret", "rotate")).code, 0);
  assert.match(readFileSync(here.path, "utf8"), /WEBHOOK_SECRET_PREVIOUS/);
  assert.doesNotMatch(readFileSync(path, "utf8"), /WEBHOOK_SECRET_PREVIOUS/);
});

test("during a rotation both secrets are accepted, and status reports the use of each", async (t) => {
  const repoPath = temporaryDirectory(t);
  const { path, target } = envFile(t, `WEBHOOK_SECRET=${testSecret}\n`, repoPath);
  const service = await startService(t, { repoPath, script: "#!/bin/sh\n" });
  await deliver(service.url, githubPush());
  await service.end();
  assert.equal((await hotpush(target, "secret", "rotate")).code, 0);
  const secret = /^WEBHOOK_SECRET=(\w+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? "";
  const env = { WEBHOOK_SECRET: secret, WEBHOOK_SECRET_PREVIOUS: testSecret };
  const rotated = await service.again({ env });
  assert.equal((await deliver(rotated.url, githubPush())).status, 202);
  const before = (await hotpushJson<StatusJson>(rotated, "status")).secrets;
  assert.deepEqual(
    [before.previous?.host, before.previous?.deliveryId],
    ["github", "72d3162e-cc78-11e3-81ab-4c9367dc0958"],
  );
  assert.equal(before.canDropPrevious, false);
  assert.match(
    (await hotpush({ ...rotated, cwd: repoPath }, "secret", "drop-previous")).stderr,
    /the current secret was not used since/,
  );
  assert.equal((await deliver(rotated.url, githubPush({}, secret))).status, 202);
  await until("the use of the current secret is noted", async () => {
    const { current } = (await hotpushJson<StatusJson>(rotated, "status")).secrets;
    return current.lastUsedAt;
  });
  const status = await hotpush(rotated, "status");
  assert.match(status.stdout, /\nSecret {5}current: last used \d+ s ago by github, delivery\n {11}72d3162e-/);
  assert.match(status.stdout, /\n {11}previous: last used \d+ s ago by github, delivery\n {11}72d3162e-/);
  assert.match(
    status.stdout.replaceAll(/\s+/g, " "),
    /only one webhook .+: hotpush secret drop-previous --force/,
  );
  assert.ok(!status.stdout.includes(secret) && !status.stdout.includes(testSecret));
  const log = rotated.log.lines.map((line) => JSON.stringify(line)).join("\n");
  assert.ok(!log.includes(secret) && !log.includes(testSecret));
});
