import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseEnvFile } from "../../src/platform/env-file.ts";
import { compareStarted } from "../../src/setup/neighbors.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** Compares what runs in a checkout, `file` of the compose project `project`, with its compose.yaml. */
async function compare(
  t: TestContext,
  { project = "shop", file = "compose.yaml", service = "web", dotenv = "", envFile = "" },
) {
  const override = { "compose.override.yaml": "# Written by `hotpush init`; ours" };
  const root = temporaryDirectory(t);
  for (const [name, text] of Object.entries({ "compose.yaml": "", "prod.yaml": "", ...override }))
    writeFileSync(join(root, name), text);
  const label = (name: string) => `com.docker.compose.${name}`;
  const Labels = {
    [label("project")]: project,
    [label("service")]: service,
    [label("project.working_dir")]: root,
    [label("project.environment_file")]: envFile && join(root, envFile),
    [label("project.config_files")]: [file, "compose.override.yaml"].map((name) => join(root, name)).join(),
  };
  const one = { Id: "1", Names: [`/${project}-${service}-1`], Labels, State: "running", Ports: [] };
  const server = createServer((_, response) =>
    response.end(JSON.stringify([{ ...one, NetworkSettings: {} }])),
  );
  const path = await listenAt(t, server, join(root, "engine.sock"));
  const composeFiles = [join(root, "compose.yaml")];
  const model = { name: "shop", services: { web: {} } };
  return compareStarted({ root, env: parseEnvFile(dotenv), composeFiles }, model, {
    DOCKER_HOST: `unix://${path}`,
  });
}

test("what was started with -p is not started a second time, with empty volumes", async (t) => {
  const said =
    /prod-web-1 was started .* write COMPOSE_PROJECT_NAME=prod into \.env; .* compose -p prod down/;
  await assert.rejects(compare(t, { project: "prod" }), said);
  for (const good of [{}, { project: "prod", dotenv: "COMPOSE_PROJECT_NAME=shop" }])
    assert.deepEqual(await compare(t, good), []);
});

test("what was started with -f is not replaced by what another file says", async (t) => {
  const said = /shop-web-1 was started from prod\.yaml, .* COMPOSE_FILE=prod\.yaml into \.env/;
  await assert.rejects(compare(t, { file: "prod.yaml" }), said);
  assert.deepEqual(await compare(t, { file: "prod.yaml", dotenv: "COMPOSE_FILE=compose.yaml" }), []);
  // A push has renamed it.
  assert.deepEqual(await compare(t, { file: "docker-compose.yml" }), []);
});

test("the variables of another env file are not lost", async (t) => {
  await assert.rejects(compare(t, { envFile: "prod.yaml" }), /was started with --env-file prod\.yaml, which/);
  assert.deepEqual(await compare(t, { envFile: ".env" }), []);
});

test("what was started with --profile is named", async (t) => {
  const [note, ...more] = await compare(t, { service: "worker" });
  assert.match(
    note ?? "",
    /shop-worker-1 runs, but no push updates it: .*COMPOSE_PROFILES=<profile> in \.env/,
  );
  assert.equal(more.length, 0);
});
