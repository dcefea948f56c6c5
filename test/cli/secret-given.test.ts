import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { envFile, rotateTo, settings } from "./env-file.ts";

test("a given secret that compose and Node read differently gets single quotes", (t) => {
  const { path, target } = envFile(t, `WEBHOOK_SECRET=${testSecret}\n`);
  assert.equal(rotateTo("abc#def$ghijklmnopq", target.cwd).status, 0);
  assert.match(readFileSync(path, "utf8"), /^WEBHOOK_SECRET='abc#def\$ghijklmnopq'$/m);
});

test("a given secret that the file would change is refused, and nothing changes", (t) => {
  const { path, target } = envFile(t, `WEBHOOK_SECRET=${testSecret}\n`);
  const { status, stderr } = rotateTo("abc'def ghijklmnopq", target.cwd);
  assert.equal(status, 1);
  assert.match(stderr, /contains an apostrophe or a line end.*Generate another one/);
  assert.equal(readFileSync(path, "utf8"), `WEBHOOK_SECRET=${testSecret}\n`);
});

test("--stdin reads the secret that the git host made", (t) => {
  const { path, target } = envFile(t, settings);
  const { status, stdout } = rotateTo("whsec_dGhlIHRva2VuIHRoYXQgR2l0TGFiIG1hZGU=", target.cwd);
  assert.deepEqual([status, stdout.includes("whsec_")], [0, false]);
  assert.match(readFileSync(path, "utf8"), /^WEBHOOK_SECRET=whsec_dGhlIHRva2VuIHRoYXQgR2l0TGFiIG1hZGU=$/m);
});
