import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { hasComposeFile } from "../../../src/doctor/docker/probe-docker.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("a compose file, a stack file or COMPOSE_FILE means containers, as in deploy.sh", (t) => {
  assert.equal(hasComposeFile(temporaryDirectory(t), {}), false);
  assert.equal(hasComposeFile(temporaryDirectory(t), { COMPOSE_FILE: "prod.yaml" }), true);
  for (const name of ["compose.yaml", "docker-compose.yml", "stack.yaml", "docker-stack.yml"]) {
    const directory = temporaryDirectory(t);
    writeFileSync(join(directory, name), "");
    assert.equal(hasComposeFile(directory, {}), true, name);
  }
});

test("a COMPOSE_FILE in the repository's .env counts; an unreadable .env does not", (t) => {
  const named = temporaryDirectory(t);
  writeFileSync(join(named, ".env"), "COMPOSE_FILE=ops/shop.yaml\n");
  assert.equal(hasComposeFile(named, {}), true);
  const unreadable = temporaryDirectory(t);
  mkdirSync(join(unreadable, ".env"));
  assert.equal(hasComposeFile(unreadable, {}), false);
});
