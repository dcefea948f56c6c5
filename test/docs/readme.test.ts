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

test("every relative link of the documents leads to a file, and to a heading in it", () => {
  for (const page of pages) {
    for (const [, path = "", anchor] of read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      const target = path === "" ? page : join(dirname(page), path);
      assert.ok(existsSync(join(root, target)), `${page} links to ${target}`);
      if (anchor) assert.ok(anchorsOf(read(target)).includes(anchor), `${page} links to ${target}#${anchor}`);
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
