import assert from "node:assert/strict";
import { test } from "node:test";
import { runCli } from "../harness/cli.ts";
import { makeRepository } from "../harness/repository.ts";
import { makeMachine } from "../harness/roles.ts";
import { writeScript } from "../harness/temporary.ts";

test("send --project pushes the head of a project, with its secret, to its own address", async (t) => {
  const machine = makeMachine(t);
  const repository = makeRepository(t);
  writeScript(`${repository.directory}/deploy.sh`, "#!/bin/sh\n");
  const commit = repository.commit("Show the tide of tomorrow");
  machine.addProject("shop", repository.directory, { WEBHOOK_SECRET: "the secret of the shop, long enough" });
  const service = await machine.start("all");
  const env = { PROJECTS_PATH: machine.projectsPath, WEBHOOK_PORT: String(service.port) };
  const send = (...args: readonly string[]) => runCli(["send", ...args], { cwd: machine.secretsPath, env });
  const sent = await send("--project", "shop");
  assert.equal(sent.code, 0, sent.stderr);
  assert.match(sent.stdout, /\/webhook\/shop: a signed push of/);
  assert.ok(sent.stdout.includes(commit.slice(0, 7)));
  await service.log.waitForEnding(1);
  assert.match((await send("--project", "shoe")).stderr, /There is no project shoe/);
  assert.match((await send("--project", "../shop")).stderr, /There is no project \.\.\/shop/);
});
