import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { planFile, type WantedFile, writePlanned } from "../../src/setup/planned-file.ts";
import { findRemovedProject, formerProjectName, withRemovedFiles } from "../../src/setup/remove.ts";
import { findServer, type Server } from "../../src/setup/server.ts";
import { makeServer } from "../harness/server.ts";
import type { Scope } from "../harness/temporary.ts";

const wanted: WantedFile = {
  ...{ name: "projects/shop.env", mode: 0o640, purpose: "the project" },
  make: (before) => `${before ?? ""}BRANCH=main\n`,
};

test("a project that is added again gets its name and the secrets that were kept", (t) => {
  const { server, path } = makeRemoved(t);
  assert.equal(formerProjectName(server, "/srv/shop"), "shop");
  for (const file of withRemovedFiles(server, { root: "/srv/shop", name: "shop" }, [wanted]))
    writePlanned(planFile(path, file));
  const read = (name: string) => readFileSync(join(path, name), "utf8");
  assert.match(read("projects/shop.env"), /WEBHOOK_SECRET=the old one\nBRANCH=main\n$/);
  assert.equal(read("secrets/shop.env"), "TOKEN=t0ken\n");
  assert.equal(statSync(join(path, "secrets/shop.env")).mode & 0o777, 0o600);
});

test("a file that is there counts more than the one that was kept", (t) => {
  const { server, path } = makeRemoved(t);
  writeFileSync(join(path, "secrets/shop.env"), "TOKEN=new\n");
  const files = withRemovedFiles(server, { root: "/srv/shop", name: "shop" }, []);
  assert.deepEqual(
    files.map((file) => planFile(path, file).text),
    ["TOKEN=new\n"],
  );
});

test("another checkout never gets the secrets of a removed project", (t) => {
  const { server, addProject } = makeRemoved(t);
  assert.equal(findRemovedProject(server, "/srv/other"), null);
  assert.deepEqual(withRemovedFiles(server, { root: "/srv/other", name: "shop" }, [wanted]), [wanted]);
  addProject("shop", "/srv/other");
  assert.equal(formerProjectName(server, "/srv/shop"), null, "the name is taken");
});

/** A server with a project that was removed. */
function makeRemoved(scope: Scope) {
  const { path, env, addProject } = makeServer(scope);
  for (const directory of ["secrets", "removed/projects", "removed/secrets"])
    mkdirSync(join(path, directory), { recursive: true });
  writeFileSync(join(path, "removed/projects/shop.env"), "REPO_PATH=/srv/shop\nWEBHOOK_SECRET=the old one\n");
  writeFileSync(join(path, "removed/secrets/shop.env"), "TOKEN=t0ken\n");
  return { path, addProject, server: findServer(env) as Server };
}
