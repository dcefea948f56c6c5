import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { callService } from "../../src/control/client.ts";
import type { HistoryJson } from "../../src/control/history.ts";
import type { ImportedJson } from "../../src/control/import.ts";
import { CommandError } from "../../src/problems.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { idOf, writeOldDatabase } from "../harness/old-database.ts";
import { makeCheckout, pushTo, startProjects } from "../harness/projects.ts";
import type { RunningRole } from "../harness/roles.ts";
import { commitOf } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

for (let version = 1; version < 5; version += 1) {
  test(`a service of several projects takes over a state of version ${version}, with its logs`, async (t) => {
    const { service, machine } = await startProjects(t, { blog: "true" });
    await pushTo(service, "blog");
    await service.log.waitFor(({ event }) => event === "deployment.succeeded");
    const directory = temporaryDirectory(t);
    writeOldDatabase(directory, version);
    mkdirSync(join(directory, "logs"));
    writeFileSync(
      join(directory, "logs", `${idOf("succeeded")}.log`),
      "==> Build\nbuilt by the old service\n",
    );
    const imported = await importInto(service, directory);
    assert.deepEqual(imported, { project: "shop", added: 8, known: 0 });
    machine.addProject("shop", makeCheckout(t, "echo deployed here"));
    const done = await service.log.waitFor(
      ({ event, project }) => event === "deployment.succeeded" && project === "shop",
    );
    const { deployments } = await hotpushJson<HistoryJson>(service, "history", "--project", "shop");
    const of = (state: Parameters<typeof commitOf>[0]) =>
      deployments.find(({ commit }) => commit === commitOf(state));
    assert.equal(of("succeeded")?.id, idOf("succeeded") + 1);
    assert.equal(of("queued")?.id, done.deployment);
    const { stdout } = await hotpush(service, "logs", String(idOf("succeeded") + 1));
    assert.match(stdout, /built by the old service/);
    assert.deepEqual(await importInto(service, directory), { project: "shop", added: 0, known: 8 });
  });
}

test("a damaged, a newer and a missing database are refused, and left as they are", async (t) => {
  const { service } = await startProjects(t, { blog: "true" });
  const [damaged, newer, missing] = [temporaryDirectory(t), temporaryDirectory(t), temporaryDirectory(t)];
  writeFileSync(join(damaged, "hotpush.db"), "this is no database".repeat(1_000));
  const database = new DatabaseSync(join(newer, "hotpush.db"));
  database.exec("PRAGMA user_version = 99");
  database.close();
  const before = readFileSync(join(damaged, "hotpush.db"));
  await assert.rejects(importInto(service, damaged), refused(/cannot be read.+Nothing was taken/));
  await assert.rejects(importInto(service, newer), refused(/has version 99/));
  await assert.rejects(importInto(service, missing), refused(/there is no hotpush\.db/));
  assert.deepEqual(readFileSync(join(damaged, "hotpush.db")), before);
  await assert.rejects(importInto(service, damaged, "Not a name"), refused(/name of the project/));
  const { deployments } = await hotpushJson<HistoryJson>(service, "history");
  assert.deepEqual(deployments, []);
});

function importInto(service: RunningRole, directory: string, project = "shop"): Promise<ImportedJson> {
  return callService<ImportedJson>(service.statePath, "POST", "/import", { project, directory });
}

function refused(text: RegExp) {
  return (error: unknown) => error instanceof CommandError && text.test(error.message);
}
