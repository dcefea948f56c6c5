import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("the engine is free again soon after the run of a test file is killed", async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, "holds.test.ts");
  const held = join(directory, "held");
  writeFileSync(
    file,
    `import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { takeEngine } from ${JSON.stringify(join(import.meta.dirname, "engine-lock.ts"))};
test("holds", async () => {
  await takeEngine("alone");
  writeFileSync(${JSON.stringify(held)}, "");
  setInterval(() => {}, 1_000);
  await new Promise(() => {});
});`,
  );
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const start = () =>
    spawn(process.execPath, ["--test", file], { env: { ...env, TMPDIR: directory }, stdio: "ignore" });
  const killed = start();
  await until("the engine is held", () => existsSync(held), 30_000);
  killed.kill("SIGKILL");
  const lock = join(directory, "hotpush-lab-engine.lock");
  await until("the engine is free", () => isFree(lock), 30_000);
});

test("a test file that fails before its tests frees the engine", async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, "fails.test.ts");
  writeFileSync(
    file,
    `import { after, before, describe, test } from "node:test";
import { takeEngine } from ${JSON.stringify(join(import.meta.dirname, "engine-lock.ts"))};
describe("fails", () => {
  let leave;
  before(async () => { leave = await takeEngine("alone"); });
  before(() => { throw new Error("no server"); });
  test("never runs", () => {});
  after(() => { throw new Error("nothing to remove"); });
  after(() => leave());
});`,
  );
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, ["--test", file], {
    env: { ...env, TMPDIR: directory },
    stdio: "ignore",
  });
  let hasEnded = false;
  child.once("exit", () => {
    hasEnded = true;
  });
  t.after(() => child.kill("SIGKILL"));
  await until("it ends", () => hasEnded, 30_000);
});

async function isFree(lock: string): Promise<boolean> {
  const child = spawn("flock", ["--nonblock", lock, "true"], { stdio: "ignore" });
  return (await new Promise((resolve) => child.once("exit", resolve))) === 0;
}
