import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findStatePath } from "../../../src/rollout/compose/find-state-path.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { temporaryDirectory, writeScript } from "../../harness/temporary.ts";
import { engineWithMachinePart } from "../machine-engine.ts";

const networks = { hotpush: { name: "hotpush-shop", external: true } };

/** A checkout of which compose says that it is on the machine part, or not, and a machine part without its state. */
function checkout(t: TestContext, model: object = { name: "shop", services: {}, networks }) {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), `#!/bin/sh\necho '${JSON.stringify(model)}'\n`);
  const env = { PATH: `${directory}${delimiter}${process.env.PATH}`, XDG_STATE_HOME: "/somewhere" };
  const statePath = join(directory, "state");
  const engine = engineWithMachinePart({ statePath, livePath: join(statePath, "live") });
  const path = join(statePath, "projects/shop");
  return { env, engine, path, target: { projectDirectory: directory, files: [] } };
}

test("by hand, the state of a project on the machine part is that of its script", async (t) => {
  const { engine, target, env, path } = checkout(t);
  mkdirSync(path, { recursive: true });
  assert.equal(await findStatePath(engine, target, env), path);
  const inRun = { ...env, STATE_PATH: "/var/lib/hotpush/run", MACHINE_STATE_PATH: "/var/lib/hotpush" };
  assert.equal(await findStatePath(engine, target, inRun), path);
});

test("a given STATE_PATH counts, as the script has it", async (t) => {
  const { engine, target, env } = checkout(t);
  assert.equal(await findStatePath(engine, target, { ...env, STATE_PATH: "/given" }), "/given");
});

test("another project keeps its state with the user's", async (t) => {
  const { engine, target, env } = checkout(t, { name: "shop", services: {} });
  assert.equal(await findStatePath(engine, target, env), "/somewhere/hotpush");
});

test("if this user cannot use that state, nothing happens", async (t) => {
  const { engine, target, env, path } = checkout(t);
  const refused = isProblem(
    "state_unusable",
    new RegExp(`${path}, .* as the owner of the checkout or as root`),
  );
  await assert.rejects(findStatePath(engine, target, env), refused);
});
