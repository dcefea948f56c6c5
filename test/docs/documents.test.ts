import assert from "node:assert/strict";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const markdown = (folder: string) => readdirSync(join(root, folder)).filter((name) => name.endsWith(".md"));
const pages = [...markdown("."), ...markdown("docs").map((name) => `docs/${name}`)];
const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read("package.json"));

test("docs/dependencies.md has a reason for every dependency", () => {
  const page = read("docs/dependencies.md");
  const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  const missing = names.filter((name) => !page.includes(`\`${name}\``));
  assert.deepEqual(missing, []);
});

test("every relative link of the documents leads to a file, and to a heading in it", () => {
  for (const page of pages) {
    for (const [, path = "", anchor] of read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      const target = path === "" ? page : join(dirname(page), path);
      assert.ok(existsSync(join(root, target)), `${page} links to ${target}`);
      if (anchor) assert.ok(anchorsOf(read(target)).includes(anchor), `${page} links to ${target}#${anchor}`);
    }
  }
});

test("every row of docs/compose-support.md names its tests", () => {
  const rows = read("docs/compose-support.md")
    .split("\n")
    .filter((line) => /^\| (?!Key)\S/.test(line));
  assert.ok(rows.length >= 18, `only ${rows.length} found`);
  for (const row of rows) {
    // The test before this one follows the links.
    assert.match(row, /\]\(\.\.\/test\/[^)]+\.test\.ts\)/);
  }
});

test("nothing says to run or install hotpush by its name on npm, which anybody may take", () => {
  const shown = globSync("{src,examples,demo}/**/*.*", { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const byName = /\bnpx\b.*\bhotpush\b|\bnpm (?:i|install|exec|x)\b.*\shotpush\b/;
  const told = [...pages.map((path) => join(root, path)), ...shown];
  assert.deepEqual(
    told.filter((path) => byName.test(readFileSync(path, "utf8"))),
    [],
  );
});

const security = read("docs/threat-model.md");
const threats = security.slice(
  security.indexOf("\n## A stolen webhook secret"),
  security.indexOf("\n## Bounds"),
);
const reference = /`(test\/[\w./-]+\.test\.ts)`: "([^"\n]+)"/g;

test("every test that docs/threat-model.md names exists", () => {
  const named = [...security.matchAll(reference)];
  assert.ok(named.length >= 40, `only ${named.length} found`);
  // No reference is passed over because it is written in another way.
  assert.equal(named.length, security.match(/`test\//g)?.length);
  for (const [, path = "", name = ""] of named) {
    assert.ok(existsSync(join(root, path)), `${path} is not there`);
    assert.ok(testNames(read(path)).includes(name), `${path} has no test "${name}"`);
  }
});

test("every promise of docs/threat-model.md names its test", () => {
  const lines = threats.split(/\n(?=- )/).filter((line) => line.startsWith("- "));
  assert.ok(lines.length >= 25, `only ${lines.length} found`);
  for (const line of lines) {
    // These state a limit, not a promise.
    const isLimit = /^- \*\*(?:Can |It can |Controls |A secret that|Anyone who can write)/.test(line);
    assert.ok(isLimit || /`test\//.test(line), line);
  }
});

/** The names in a file of tests, as far as they are written out. */
function testNames(source: string): readonly string[] {
  return [...source.matchAll(/\b(?:test|fuzz)\(\s*(["`])(.*?)\1\s*,/g)].map(([, , name = ""]) => name);
}

/** The anchors of a page's headings, as git hosts name them. */
function anchorsOf(text: string): readonly string[] {
  const headings = text.replace(/^```[\s\S]*?^```/gm, "").match(/(?<=^#+ ).+$/gm) ?? [];
  return headings.map((one) =>
    one
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}
