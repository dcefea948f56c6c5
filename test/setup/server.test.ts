import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { hasOldFiles } from "../../src/setup/machine.ts";
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

test("run is behind if a file of this machine has another content in its container", async (t) => {
  const directory = temporaryDirectory(t);
  const at = (name: string) => join(directory, name);
  writeScript(at("docker"), '#!/bin/sh\nshift 2\nexec "$@"\n');
  for (const name of ["passwd", "ca.crt", "passwd-in-run", "ca-in-run"])
    writeFileSync(at(name), name.slice(0, 2));
  const mounts = [
    { Source: at("passwd"), Destination: at("passwd-in-run") },
    { Source: at("ca.crt"), Destination: at("ca-in-run") },
    { Source: directory, Destination: "/srv" },
    { Destination: "/tmp" },
  ];
  const engineWith = (Mounts: readonly object[]): Engine => ({
    get: async () => Buffer.from(JSON.stringify({ Mounts })),
    post: async () => Buffer.from(""),
    delete: async () => Buffer.from(""),
  });
  const env = { PATH: `${directory}:${process.env.PATH}` };
  assert.equal(await hasOldFiles(engineWith(mounts), env), false);
  assert.equal(await hasOldFiles(engineWith([]), env), false);
  writeFileSync(at("ca.crt"), "with another authority");
  assert.equal(await hasOldFiles(engineWith(mounts), env), true);
  writeScript(at("docker"), "#!/bin/sh\nexit 1\n");
  assert.equal(await hasOldFiles(engineWith(mounts), env), false, "run does not run");
});
