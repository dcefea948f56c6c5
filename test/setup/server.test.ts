import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { statePathOf } from "../../src/cli/service-access.ts";
import { isUserKnown } from "../../src/setup/machine.ts";
import { chooseProject, findProjectAround, findServer, type Server } from "../../src/setup/server.ts";
import { makeServer } from "../harness/machine.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

test("a server is there if it has a compose file; its .env names the state", (t) => {
  const { env, runStatePath } = makeServer(t);
  assert.equal(findServer(env)?.state.run, runStatePath);
  assert.equal(findServer({ SERVER_PATH: temporaryDirectory(t) }), null);
});

test("the project of a directory is that of the innermost checkout around it", (t) => {
  const { server, outer, inner } = makeProjects(t);
  mkdirSync(join(inner, "src"));
  assert.equal(findProjectAround(server, join(inner, "src"))?.name, "inner");
  assert.equal(findProjectAround(server, outer)?.name, "outer");
  const link = join(temporaryDirectory(t), "link");
  symlinkSync(inner, link);
  assert.equal(findProjectAround(server, link)?.name, "inner");
  assert.equal(findProjectAround(server, "/"), null);
});

test("a named project must be there, unless the checkout has a Hotpush of its own", (t) => {
  const { server, outer } = makeProjects(t);
  assert.equal(chooseProject(server, "/", "outer")?.name, "outer");
  assert.throws(() => chooseProject(server, outer, "shop"), /no project shop.+ are: inner, outer\./);
  assert.throws(() => chooseProject(server, outer, "../inner"), /There is no project/);
  assert.equal(chooseProject(server, makeOwn(t), "shop"), null);
  assert.equal(chooseProject(server, "/", undefined), null);
});

test("commands call the server, but in a checkout with a Hotpush of its own", (t) => {
  const { env, server, outer } = makeProjects(t);
  const HOME = temporaryDirectory(t);
  const own = join(HOME, ".local/state/hotpush");
  const found = (directory: string, project?: string) =>
    statePathOf({ ...env, HOME }, { directory, project }, "/nowhere");
  assert.equal(found(outer), server.state.run);
  assert.equal(found("/"), server.state.run);
  assert.equal(found(makeOwn(t)), own);
  assert.equal(found(makeOwn(t), "outer"), server.state.run, "a name decides");
  assert.equal(statePathOf({ ...env, STATE_PATH: "/given" }, { directory: outer }), "/given");
});

test("a user is unknown only if run has no such line in /etc/passwd", async (t) => {
  for (const [script, isKnown] of [
    ["exit 0", true],
    ["exit 2", false],
    ["exit 1", true],
    ["exit 125", true],
  ] as const) {
    const bin = temporaryDirectory(t);
    writeScript(join(bin, "docker"), `#!/bin/sh\n${script}\n`);
    assert.equal(await isUserKnown(61_001, { PATH: `${bin}:${process.env.PATH}` }), isKnown, script);
  }
});

/** Two projects, one inside the other's checkout. */
function makeProjects(scope: Scope) {
  const { env, addProject } = makeServer(scope);
  const outer = temporaryDirectory(scope);
  const inner = join(outer, "inner");
  mkdirSync(inner);
  addProject("outer", outer);
  addProject("inner", inner);
  const server = findServer(env) as Server;
  return { env, server, outer, inner };
}

/** A checkout that was set up with a Hotpush of its own. */
function makeOwn(scope: Scope): string {
  const path = temporaryDirectory(scope);
  writeFileSync(join(path, ".env"), "WEBHOOK_SECRET=its own\n");
  return path;
}
