import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { withSourcesReadOnly } from "../../src/rollout/tracked-sources.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const isRoot = process.getuid?.() === 0;

type Files = Readonly<Record<string, string>>;

/** Each with the files that are committed, and what is there besides. */
const cases: readonly (readonly [claim: string, isCode: boolean, committed: Files, others?: Files])[] = [
  ["sources", true, { "src/app.js": "1", "src/lib/a.js": "2", "src/.hidden": "3" }],
  ["a file of them", true, { src: "1" }],
  ["what lies elsewhere", true, { "src/app.js": "1" }, { "data/app.db": "2" }],
  ["nothing but a dotfile", false, { "src/.gitkeep": "" }],
  ["nothing that git knows", false, { "app.js": "1" }, { "src/app.js": "1" }],
  ["an untracked file", false, { "src/app.js": "1" }, { "src/rows": "2" }],
  ["an ignored directory", false, { "src/app.js": "1" }, { "src/node_modules/a/index.js": "2" }],
  ["a modified file", false, { "src/app.js": "1" }, { "src/app.js": "2" }],
  ["a file with the name of a database", false, { "src/app.js": "1", "src/app.sqlite3": "2" }],
  ["a database", false, { "src/app.js": "1", "src/rows": "SQLite format 3\0rows" }],
];

const git = (directory: string, ...args: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=a@example.org", ...args], { cwd: directory });

function write(directory: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
}

async function isCode(directory: string, source: string): Promise<boolean> {
  const volumes = [{ type: "bind", source: join(directory, source), target: "/src" }];
  const model = { name: "shop", services: { app: { volumes } } };
  const { services } = await withSourcesReadOnly(model, directory, process.env);
  return services.app?.volumes?.[0]?.read_only ?? false;
}

for (const [claim, expected, committed, others = {}] of cases)
  test(`${claim} in a writable mount: ${expected ? "code" : "data"}`, async (t) => {
    const directory = temporaryDirectory(t);
    git(directory, "init", "--quiet");
    write(directory, { ...committed, ".gitignore": "node_modules\n" });
    git(directory, "add", "--all");
    git(directory, "commit", "--quiet", "--message", "first");
    write(directory, others);
    assert.equal(await isCode(directory, "src"), expected);
  });

test("a whole checkout is code with the files that init writes; outside of one, all is data", async (t) => {
  const directory = temporaryDirectory(t);
  write(directory, { "app.js": "1", ".gitignore": ".env\n", "compose/compose.yaml": "" });
  assert.equal(await isCode(directory, "."), false);
  git(directory, "init", "--quiet");
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "first");
  write(directory, { ".env": "A=1", "deploy.sh": "" });
  assert.equal(await isCode(directory, "."), true);
  assert.equal(await isCode(join(directory, "compose"), ".."), true);
  write(directory, { "sub/.env": "A=1" });
  assert.equal(await isCode(directory, "."), false);
});

test("a directory that the owner of the checkout cannot read is data", { skip: !isRoot }, async (t) => {
  const directory = temporaryDirectory(t);
  git(directory, "init", "--quiet");
  write(directory, { "src/app.js": "1" });
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "first");
  execFileSync("chown", ["-R", "1234:1234", directory]);
  assert.equal(await isCode(directory, "src"), true);
  write(directory, { "src/rows/1": "2" });
  chmodSync(join(directory, "src/rows"), 0o700);
  assert.equal(await isCode(directory, "src"), false);
});
