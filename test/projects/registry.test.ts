import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import type { ProjectConfig, ProjectFiles } from "../../src/config/project-files.ts";
import { makeSecret } from "../../src/config/secret.ts";
import { createTurns } from "../../src/deployments/queue.ts";
import { Project, type Shared } from "../../src/projects/project.ts";
import { ProjectRegistry } from "../../src/projects/registry.ts";
import { testSecret } from "../harness/delivery.ts";
import { temporaryStore } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a project that cannot stop keeps no other one from it", async (t) => {
  const registry = registryOf(t, ["blog", "shop"]);
  const stopped: string[] = [];
  t.mock.method(Project.prototype, "stop", async function (this: Project) {
    if (this.name === "blog") throw new Error("disk I/O error");
    await new Promise(setImmediate);
    stopped.push(this.name);
  });
  await registry.stop();
  assert.deepEqual(stopped, ["shop"]);
});

function registryOf(t: TestContext, names: readonly string[]): ProjectRegistry {
  const statePath = temporaryDirectory(t);
  const store = temporaryStore(t);
  const shared = {
    service: { statePath, serverStatePath: null, projectsPath: null, shutdownGraceMs: 0 },
    env: {},
    store,
    events: new EventEmitter(),
    notifications: { subscribe() {}, start() {}, wake() {} },
    makeTurn: createTurns(1).make,
    lookInTurn: (look: () => Promise<void>) => look(),
    isLeader: () => false,
    log: pino({ enabled: false }),
  } as unknown as Shared;
  const settings = {
    repoPath: statePath,
    deployEnv: [],
    secrets: { current: makeSecret(testSecret), previous: null },
    notify: { on: "all", targets: [] },
    commitStatus: null,
    catchUpIntervalMs: 0,
    branch: null,
  };
  const files = {
    list: () => names.map((name) => ({ name, settings, scriptSecrets: {} }) as unknown as ProjectConfig),
    watch() {},
    stop() {},
  } as unknown as ProjectFiles;
  return new ProjectRegistry(shared, files);
}
