import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isUserKnown } from "../../src/setup/machine.ts";
import { chooseProject, findServer, type Server } from "../../src/setup/server.ts";
import { makeServer } from "../harness/machine.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

test("a project is named, or that of the innermost checkout around a directory", (t) => {
  const { env, addProject } = makeServer(t);
  const outer = temporaryDirectory(t);
  const inner = join(outer, "inner");
  const link = join(temporaryDirectory(t), "link");
  mkdirSync(join(inner, "src"), { recursive: true });
  symlinkSync(inner, link);
  addProject("outer", outer);
  addProject("inner", inner);
  const server = findServer(env) as Server;
  for (const [directory, name, found] of [
    [join(inner, "src"), undefined, "inner"],
    [outer, undefined, "outer"],
    [link, undefined, "inner"],
    ["/", undefined, undefined],
    ["/", "outer", "outer"],
  ] as const)
    assert.equal(chooseProject(server, directory, name)?.name, found);
  assert.throws(() => chooseProject(server, outer, "shop"), /no project shop.+ are: inner, outer\./);
  assert.throws(() => chooseProject(server, outer, "../inner"), /There is no project/);
});

test("a user is unknown only if run has no such line in /etc/passwd", async (t) => {
  for (const code of [0, 1, 2, 125]) {
    const bin = temporaryDirectory(t);
    writeScript(join(bin, "docker"), `#!/bin/sh\nexit ${code}\n`);
    assert.equal(await isUserKnown(61_001, { PATH: `${bin}:${process.env.PATH}` }), code !== 2);
  }
});
