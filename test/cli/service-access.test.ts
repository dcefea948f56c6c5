import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { statePathOf } from "../../src/cli/service-access.ts";
import { operatorSocketPath } from "../../src/config/server.ts";
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
