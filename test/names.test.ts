import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../src");
const exported = /^export (?:async )?(?:function\*?|class|interface|type|const|let) +([\w$]+)/gm;

test("an exported name has one meaning in the whole tree", () => {
  const places = new Map<string, string[]>();
  for (const file of globSync("**/*.ts", { cwd: root })) {
    const names = readFileSync(join(root, file), "utf8").matchAll(exported);
    for (const name of new Set(Array.from(names, ([, name = ""]) => name)))
      places.set(name, [...(places.get(name) ?? []), file]);
  }
  assert.ok(places.size > 500, `${places.size} names`);
  assert.deepEqual(
    [...places].filter(([, files]) => files.length > 1),
    [],
  );
});
