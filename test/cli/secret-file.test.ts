import assert from "node:assert/strict";
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { hotpush } from "../harness/hotpush.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { envFile } from "./env-file.ts";

test("the file of the previous secret has the same owner as that of the secret", needs("root"), async (t) => {
  const secretPath = join(temporaryDirectory(t), "secret");
  writeFileSync(secretPath, `${testSecret}\n`, { mode: 0o400 });
  chownSync(secretPath, 12, 34);
  const { target } = envFile(t, `WEBHOOK_SECRET_FILE=${secretPath}\n`);
  assert.equal((await hotpush(target, "secret", "rotate")).code, 0);
  const { uid, gid } = statSync(`${secretPath}.previous`);
  assert.deepEqual([uid, gid], [12, 34]);
});

test(
  "root rotates no secret that the settings of another user name, or in their directory",
  needs("root"),
  async (t) => {
    const directory = temporaryDirectory(t);
    const rootFile = join(temporaryDirectory(t), "file");
    writeFileSync(rootFile, "of root\n");
    const { path, target } = envFile(t, `WEBHOOK_SECRET_FILE=${rootFile}\n`);
    chownSync(path, 12, 34);
    assert.equal((await hotpush(target, "secret", "rotate")).code, 1);
    chownSync(path, 0, 0);
    chownSync(directory, 12, 34);
    writeFileSync(join(directory, "secret"), `${testSecret}\n`);
    writeFileSync(path, `WEBHOOK_SECRET_FILE=${join(directory, "secret")}\n`);
    assert.equal((await hotpush(target, "secret", "rotate")).code, 1);
    assert.equal(readFileSync(rootFile, "utf8"), "of root\n");
  },
);

test("a secret in its own file is rotated there, and the old one is kept beside it", async (t) => {
  const directory = temporaryDirectory(t);
  const secretPath = join(directory, "secret");
  writeFileSync(secretPath, `${testSecret}\n`, { mode: 0o400 });
  const { path, target } = envFile(t, `WEBHOOK_SECRET_FILE=${secretPath}\n`);
  assert.equal((await hotpush(target, "secret", "rotate")).code, 0);
  assert.match(readFileSync(secretPath, "utf8"), /^[0-9a-f]{64}\n$/);
  assert.equal(statSync(secretPath).mode & 0o777, 0o400);
  assert.equal(readFileSync(`${secretPath}.previous`, "utf8"), `${testSecret}\n`);
  assert.equal(statSync(`${secretPath}.previous`).mode & 0o777, 0o400);
  assert.match(
    readFileSync(path, "utf8"),
    new RegExp(`^WEBHOOK_SECRET_PREVIOUS_FILE=${secretPath}\\.previous$`, "m"),
  );
  assert.equal((await hotpush(target, "secret", "drop-previous", "--force")).code, 0);
  assert.equal(existsSync(`${secretPath}.previous`), false);
  assert.equal(readFileSync(path, "utf8"), `WEBHOOK_SECRET_FILE=${secretPath}\n`);
});
