import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { planFile, type WantedFile, writePlanned } from "../../src/setup/planned-file.ts";
import { findRemovedProject, formerProjectName, withRemovedFiles } from "../../src/setup/remove.ts";
import { findMachinePart, type MachinePart } from "../../src/setup/server.ts";
import { makeMachinePart } from "../harness/machine-part.ts";
import type { Scope } from "../harness/temporary.ts";

const wanted: WantedFile = {
  ...{ name: "projects/shop.env", mode: 0o640, purpose: "the project" },
  make: (before) => `${before ?? ""}BRANCH=main\n`,
};

test("a project that is added again gets its name and the secrets that were kept", (t) => {
  const { part, path } = makeRemoved(t);
  assert.equal(formerProjectName(part, "/srv/shop"), "shop");
  for (const file of withRemovedFiles(part, { root: "/srv/shop", name: "shop" }, [wanted]))
    writePlanned(planFile(path, file));
  const read = (name: string) => readFileSync(join(path, name), "utf8");
  assert.match(read("projects/shop.env"), /WEBHOOK_SECRET=the old one\nBRANCH=main\n$/);
  assert.equal(read("secrets/shop.env"), "TOKEN=t0ken\n");
  assert.equal(statSync(join(path, "secrets/shop.env")).mode & 0o777, 0o600);
});

test("a file that is there counts more than the one that was kept", (t) => {
  const { part, path } = makeRemoved(t);
  writeFileSync(join(path, "secrets/shop.env"), "TOKEN=new\n");
  const files = withRemovedFiles(part, { root: "/srv/shop", name: "shop" }, []);
  assert.deepEqual(
    files.map((file) => planFile(path, file).text),
    ["TOKEN=new\n"],
  );
});

test("another checkout never gets the secrets of a removed project", (t) => {
  const { part, addProject } = makeRemoved(t);
  assert.equal(findRemovedProject(part, "/srv/other"), null);
  assert.deepEqual(withRemovedFiles(part, { root: "/srv/other", name: "shop" }, [wanted]), [wanted]);
  addProject("shop", "/srv/other");
  assert.equal(formerProjectName(part, "/srv/shop"), null, "the name is taken");
});

/** A machine part with a project that was removed. */
function makeRemoved(scope: Scope) {
  const { path, env, addProject } = makeMachinePart(scope);
  for (const directory of ["secrets", "removed/projects", "removed/secrets"])
    mkdirSync(join(path, directory), { recursive: true });
  writeFileSync(join(path, "removed/projects/shop.env"), "REPO_PATH=/srv/shop\nWEBHOOK_SECRET=the old one\n");
  writeFileSync(join(path, "removed/secrets/shop.env"), "TOKEN=t0ken\n");
  return { path, addProject, part: findMachinePart(env) as MachinePart };
}
