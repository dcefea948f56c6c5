import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { variables } from "../../src/config.ts";
import { transitions } from "../../src/deployments/states.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const readme = read("README.md");
const pages = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)];

test("the configuration table of the README has every variable and its default", () => {
  const table = readme.slice(readme.indexOf("| Variable |"), readme.indexOf("Exit codes:"));
  const rows = new Map(
    [...table.matchAll(/^\| `(\w+)` \| .+ \| (?:`([^`]+)`|.+?)[^|]* \|$/gm)].map(([, name, value]) => [
      name,
      value,
    ]),
  );
  const secrets = ["WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"];
  assert.deepEqual([...rows.keys()].sort(), [...secrets, ...Object.keys(variables)].sort());
  for (const [name, { fallback }] of Object.entries(variables)) {
    const expected = name === "STATE_PATH" ? "$XDG_STATE_HOME/hotpush" : fallback({}) || undefined;
    assert.equal(rows.get(name), expected, name);
  }
});

test("the npm commands of the README are scripts of the package", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const commands = [...readme.matchAll(/npm (?:run (\w+)|(test|start))/g)].map(
    ([, run, plain]) => run ?? plain ?? "",
  );
  assert.ok(commands.includes("demo") && commands.includes("test"));
  for (const command of commands) assert.ok(scripts[command], command);
});

test("every relative link of the documents leads to a file", () => {
  for (const page of pages) {
    for (const [, target = ""] of read(page).matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
      assert.ok(existsSync(join(root, dirname(page), target)), `${page} links to ${target}`);
    }
  }
});

test("docs/how-it-works.md has every state and every legal move", () => {
  const rows = [...read("docs/how-it-works.md").matchAll(/^\| `(\w+)` \| .+? \| (.*?) ?\|$/gm)];
  const told = Object.fromEntries(
    rows.map(([, state, to = ""]) => [state, [...to.matchAll(/\w+/g)].map(String)]),
  );
  const sorted = (table: object) =>
    Object.fromEntries(Object.entries(table).map(([state, to]) => [state, [...to].sort()]));
  assert.deepEqual(sorted(told), sorted(transitions));
});

test("docs/how-it-works.md names only files that are there", () => {
  const tree = read("docs/how-it-works.md").split("```")[1] ?? "";
  let folder = "src";
  for (const line of tree.split("\n")) {
    folder = /^ {2}(\w+)\/ /.test(line) ? `src/${/^ {2}(\w+)/.exec(line)?.[1]}` : folder;
    for (const [name] of line.matchAll(/[\w-]+\.(?:ts|sh)(?=[ ,]|$)/g)) {
      const places = ["src", folder, "src/receiver/hosts"].map((place) => join(root, place, name));
      assert.ok(places.some(existsSync), name);
    }
  }
});
