import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { findRemovedProject, formerProjectName } from "../../src/setup/remove.ts";
import { findServer, type Server } from "../../src/setup/server.ts";
import { makeServer } from "../harness/server.ts";

test("only the checkout of a removed project gets its name and its secret again", (t) => {
  const { path, env, addProject } = makeServer(t);
  mkdirSync(join(path, "removed/projects"), { recursive: true });
  writeFileSync(join(path, "removed/projects/shop.env"), "REPO_PATH=/srv/shop\nWEBHOOK_SECRET=the old one\n");
  const server = findServer(env) as Server;
  assert.equal(formerProjectName(server, "/srv/shop"), "shop");
  assert.equal(findRemovedProject(server, "/srv/shop")?.env.WEBHOOK_SECRET, "the old one");
  assert.equal(findRemovedProject(server, "/srv/other"), null);
  addProject("shop", "/srv/other");
  assert.equal(formerProjectName(server, "/srv/shop"), null, "the name is taken");
});
