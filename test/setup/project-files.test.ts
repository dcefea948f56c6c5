import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { chooseOverrideFile, planCheckoutFiles } from "../../src/setup/checkout-files.ts";
import { writePlanned } from "../../src/setup/planned-file.ts";
import { findProject } from "../../src/setup/project.ts";
import { makeRepository } from "../harness/repository.ts";

const text = "# Written by `hotpush init`.\nservices: {}\n";

function makeCheckout(t: TestContext, files: Readonly<Record<string, string>>) {
  const repository = makeRepository(t);
  for (const [name, content] of Object.entries({ "compose.yaml": "services: {}\n", ...files }))
    repository.write(name, content);
  repository.commit();
  const setUp = async () => {
    const project = await findProject(repository.directory);
    const override = await chooseOverrideFile(project);
    for (const file of await planCheckoutFiles(project, override, text)) writePlanned(file);
    return override;
  };
  const read = (name: string) => readFileSync(join(repository.directory, name), "utf8");
  return { repository, setUp, read };
}

test("COMPOSE_FILE in .env joins the file of ours, and git sees none of them", async (t) => {
  const { repository, setUp, read } = makeCheckout(t, {});
  assert.deepEqual(await setUp(), { name: "compose.hotpush.yaml", foundBy: "dotenv" });
  assert.match(read(".env"), /^COMPOSE_FILE=.*compose\.yaml:.*compose\.hotpush\.yaml$/m);
  assert.equal(repository.git("status", "--porcelain"), "?? deploy.sh");
  await setUp();
  assert.equal(read(".git/info/exclude").match(/^\/compose\.hotpush\.yaml$/gm)?.length, 1);
});

test("a .env that is in the repository stays, and compose finds our file by its name", async (t) => {
  const { repository, setUp, read } = makeCheckout(t, { ".env": "A=1\n" });
  assert.deepEqual(await setUp(), { name: "compose.override.yaml", foundBy: "name" });
  assert.equal(read(".env"), "A=1\n");
  assert.equal(repository.git("status", "--porcelain"), "?? deploy.sh");
  const project = await findProject(repository.directory);
  assert.deepEqual(
    project.composeFiles,
    [join(repository.directory, "compose.yaml")],
    "ours is not the project's",
  );
  assert.equal((await setUp()).name, "compose.override.yaml");
});

test("without a way for compose to find a file of ours, init says what to do", async (t) => {
  const both = makeCheckout(t, { ".env": "A=1\n", "compose.override.yml": "services: {}\n" });
  await assert.rejects(
    both.setUp(),
    /only one override, and that is your compose\.override\.yml\. Add a line COMPOSE_FILE/,
  );
  const named = makeCheckout(t, { ".env": "COMPOSE_FILE=compose.yaml\n" });
  await assert.rejects(
    named.setUp(),
    /its COMPOSE_FILE names the compose files\. Add compose\.hotpush\.yaml to it/,
  );
  const joined = makeCheckout(t, { ".env": "COMPOSE_FILE=compose.yaml:compose.hotpush.yaml\n" });
  assert.deepEqual(await joined.setUp(), { name: "compose.hotpush.yaml", foundBy: "person" });
});

test("an override of the project's own is used beside ours, under each name that compose knows", async (t) => {
  const { repository } = makeCheckout(t, { "compose.override.yml": "services: {}\n" });
  const { composeFiles } = await findProject(repository.directory);
  assert.deepEqual(
    composeFiles.map((file) => file.slice(repository.directory.length + 1)),
    ["compose.yaml", "compose.override.yml"],
  );
});
