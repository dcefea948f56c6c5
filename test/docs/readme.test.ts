import assert from "node:assert/strict";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const readme = read("README.md");
const markdown = (folder: string) => readdirSync(join(root, folder)).filter((name) => name.endsWith(".md"));
const pages = [...markdown("."), ...markdown("docs").map((name) => `docs/${name}`)];

test("the npm commands of the README are scripts of the package", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const commands = [...readme.matchAll(/npm (?:run ([\w:]+)|(test|start))/g)].map(
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

test("nothing says to run or install hotpush by its name on npm, which anybody may take", () => {
  const shown = globSync("{src,examples,demo}/**/*.*", { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  const byName = /\bnpx\b.*\bhotpush\b|\bnpm (?:i|install|exec|x)\b.*\shotpush\b/;
  assert.match("run npx hotpush@latest init", byName);
  assert.deepEqual(
    [...pages, ...shown].filter((path) => byName.test(read(path))),
    [],
  );
});
