import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { transitions } from "../../src/deployments/states.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/how-it-works.md"), "utf8");

test("the tree names every stage, and only existing files and folders", () => {
  const named = readTree();
  assert.ok(named.length > 40, `only ${named.length} found`);
  for (const path of named) assert.ok(existsSync(join(root, path)), `${path} is not there`);
  const stages = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  for (const { name } of stages) {
    assert.ok(name === "config" || named.includes(`src/${name}/`), `src/${name}/ is not in the tree`);
  }
});

test("the table has every state and every legal move", () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| .+? \| (.*?) ?\|$/gm)];
  const named = Object.fromEntries(
    rows.map(([, state, to = ""]) => [state, [...to.matchAll(/\w+/g)].map(String)]),
  );
  const sorted = (table: object) =>
    Object.fromEntries(Object.entries(table).map(([state, to]) => [state, [...to].sort()]));
  assert.deepEqual(sorted(named), sorted(transitions));
});

/** The paths that the tree names. Two spaces of indentation are a folder more; descriptions may name files of `src/`. */
function readTree(): string[] {
  const block = page.match(/```\n(src\/\n[\s\S]*?)```/)?.[1] ?? "";
  const folders: string[] = [];
  return block.split("\n").flatMap((line) => {
    const [, indentation = "", folder] = line.match(/^((?: {2})*)([a-z-]+\/)?/) ?? [];
    folders.length = Math.min(folders.length, indentation.length / 2);
    const around = folders.join("");
    if (folder) folders.push(folder);
    const within = [around, folders.join(""), "src/", ""];
    const names = line.match(/(?<![\w/])[a-z-]+(?:\/[a-z-]+)*(?:\.ts|\.sh|\/)(?!\w)/g) ?? [];
    return names.map((name) => within.map((place) => place + name).find(isThere) ?? `${around}${name}`);
  });
}

function isThere(path: string): boolean {
  return existsSync(join(root, path));
}
