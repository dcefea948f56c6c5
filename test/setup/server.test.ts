import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
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

test("a named project must be there", (t) => {
  const { server, outer } = makeProjects(t);
  assert.equal(chooseProject(server, "/", "outer")?.name, "outer");
  assert.throws(() => chooseProject(server, outer, "shop"), /no project shop.+ are: inner, outer\./);
  assert.throws(() => chooseProject(server, outer, "../inner"), /There is no project/);
  assert.equal(chooseProject(server, "/", undefined), null);
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
