import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startService } from "./harness/service.ts";
import { temporaryDirectory } from "./harness/temporary.ts";

const root = join(import.meta.dirname, "..");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly scripts: { readonly prepare: string };
};
const [program = "", ...prepare] = scripts.prepare.split(" ");

test("after npm ci the first start has nothing left to compile", async (t) => {
  const cache = temporaryDirectory(t);
  execFileSync(program, prepare, { cwd: root, env: { ...process.env, NODE_COMPILE_CACHE: cache } });
  const compiled = entriesOf(cache);
  assert.ok(compiled.length > 300, `${compiled.length} files`);
  const service = await startService(t, { env: { NODE_COMPILE_CACHE: cache } });
  await service.end();
  assert.deepEqual(entriesOf(cache), compiled);
});

/** What is in the cache, with the time of its last change. */
function entriesOf(cache: string): readonly string[] {
  const names = readdirSync(cache, { recursive: true }) as string[];
  return names.map((name) => `${name} ${statSync(join(cache, name)).mtimeMs}`).sort();
}
