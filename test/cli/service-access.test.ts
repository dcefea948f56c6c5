import assert from "node:assert/strict";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { statePathOf } from "../../src/cli/service-access.ts";
import { operatorSocketPath } from "../../src/config/server.ts";
import { makeServer } from "../harness/machine.ts";
import { needs, nobody } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("the state directory is that of the environment, the home, or a usual one in use", (t) => {
  const root = temporaryDirectory(t);
  const HOME = join(root, "home");
  const usual = join(root, "usual");
  const own = join(HOME, ".local/state/hotpush");
  for (const path of [own, usual]) mkdirSync(path, { recursive: true });
  const env = { HOME, SERVER_PATH: join(root, "no-server") };
  assert.equal(statePathOf(env, usual), own);
  writeFileSync(operatorSocketPath(usual), "");
  assert.equal(statePathOf(env, usual), usual);
  assert.equal(statePathOf({ ...env, STATE_PATH: "/given" }, usual), "/given");
  writeFileSync(operatorSocketPath(own), "");
  assert.equal(statePathOf(env, usual), own);
});

test(
  "the .env of a checkout does not choose which service answers root, nor which server",
  needs("root"),
  (t) => {
    const checkout = temporaryDirectory(t);
    const usual = temporaryDirectory(t);
    writeFileSync(operatorSocketPath(usual), "");
    writeFileSync(join(checkout, ".env"), "STATE_PATH=/of/the/checkout\n");
    const server = makeServer(t);
    const before = process.cwd();
    t.after(() => process.chdir(before));
    process.chdir(checkout);
    const env = { HOME: checkout, SERVER_PATH: join(checkout, "no-server") };
    assert.equal(statePathOf(env, usual), "/of/the/checkout");
    assert.equal(statePathOf(server.env, usual), server.runStatePath);
    for (const path of [join(checkout, ".env"), checkout]) {
      chownSync(path, nobody, nobody);
      assert.equal(statePathOf(env, usual), usual);
      chownSync(path, 0, 0);
    }
  },
);
