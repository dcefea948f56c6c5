import assert from "node:assert/strict";
import { appendFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { followLog } from "../../../src/rollout/requests/follow-log.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("only what comes after the start is read, by whole lines", async (t) => {
  const path = logIn(t);
  writeFileSync(path, "before\n");
  const log = await followLog(path);
  appendFileSync(path, "one\ntw");
  assert.deepEqual(await log.read(), ["one"]);
  appendFileSync(path, "o\n");
  assert.deepEqual(await log.read(), ["two"]);
  assert.deepEqual(await log.read(), []);
  await log.close();
});

test("a log that its writer moves aside is read to its end, and then the new one", async (t) => {
  const path = logIn(t);
  writeFileSync(path, "");
  const log = await followLog(path);
  appendFileSync(path, "old\n");
  renameSync(path, `${path}.1`);
  writeFileSync(path, "new\n");
  assert.deepEqual(await log.read(), ["old", "new"]);
  appendFileSync(path, "newer\n");
  assert.deepEqual(await log.read(), ["newer"]);
  await log.close();
});

test("a log that does not exist yet is read from its beginning", async (t) => {
  const path = logIn(t);
  const log = await followLog(path);
  assert.deepEqual(await log.read(), []);
  writeFileSync(path, "first\n");
  assert.deepEqual(await log.read(), ["first"]);
  await log.close();
});

test("more than one piece is read at once, whatever characters the pieces cut", async (t) => {
  const path = logIn(t);
  const log = await followLog(path);
  const lines = Array.from({ length: 20_000 }, (_, index) => `ü ${index} ${"x".repeat(40)}`);
  writeFileSync(path, `${lines.join("\n")}\n`);
  assert.deepEqual(await log.read(), lines);
  await log.close();
});

function logIn(t: TestContext): string {
  return join(temporaryDirectory(t), "requests.log");
}
