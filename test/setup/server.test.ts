import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { statePathOf } from "../../src/cli/service-access.ts";
import {
  chooseProject,
  findMachinePart,
  findProjectAround,
  type MachinePart,
} from "../../src/setup/server.ts";
import { makeMachinePart } from "../harness/machine-part.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

test("a machine part is there if it has a compose file; its .env names the state", (t) => {
  const { env, runStatePath } = makeMachinePart(t);
  assert.equal(findMachinePart(env)?.state.run, runStatePath);
  assert.equal(findMachinePart({ MACHINE_PATH: temporaryDirectory(t) }), null);
});

test("the project of a directory is that of the innermost checkout around it", (t) => {
  const { part, outer, inner } = makeProjects(t);
  mkdirSync(join(inner, "src"));
  assert.equal(findProjectAround(part, join(inner, "src"))?.name, "inner");
  assert.equal(findProjectAround(part, outer)?.name, "outer");
  const link = join(temporaryDirectory(t), "link");
  symlinkSync(inner, link);
  assert.equal(findProjectAround(part, link)?.name, "inner");
  assert.equal(findProjectAround(part, "/"), null);
});

test("a named project must be there, unless the checkout has a Hotpush of its own", (t) => {
  const { part, outer } = makeProjects(t);
  assert.equal(chooseProject(part, "/", "outer")?.name, "outer");
  assert.throws(() => chooseProject(part, outer, "shop"), /no project shop.+ are: inner, outer\./);
  assert.throws(() => chooseProject(part, outer, "../inner"), /There is no project/);
  assert.equal(chooseProject(part, makeOwn(t), "shop"), null);
  assert.equal(chooseProject(part, "/", undefined), null);
});

test("commands call the machine part, but in a checkout with a Hotpush of its own", (t) => {
  const { env, part, outer } = makeProjects(t);
  const HOME = temporaryDirectory(t);
  const own = join(HOME, ".local/state/hotpush");
  const found = (directory: string, project?: string) =>
    statePathOf({ ...env, HOME }, { directory, project }, "/nowhere");
  assert.equal(found(outer), part.state.run);
  assert.equal(found("/"), part.state.run);
  assert.equal(found(makeOwn(t)), own);
  assert.equal(found(makeOwn(t), "outer"), part.state.run, "a name decides");
  assert.equal(statePathOf({ ...env, STATE_PATH: "/given" }, { directory: outer }), "/given");
});

/** Two projects, one inside the other's checkout. */
function makeProjects(scope: Scope) {
  const { env, addProject } = makeMachinePart(scope);
  const outer = temporaryDirectory(scope);
  const inner = join(outer, "inner");
  mkdirSync(inner);
  addProject("outer", outer);
  addProject("inner", inner);
  const part = findMachinePart(env) as MachinePart;
  return { env, part, outer, inner };
}

/** A checkout that was set up with a Hotpush of its own. */
function makeOwn(scope: Scope): string {
  const path = temporaryDirectory(scope);
  writeFileSync(join(path, ".env"), "WEBHOOK_SECRET=its own\n");
  return path;
}
