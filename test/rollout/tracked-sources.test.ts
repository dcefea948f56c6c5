import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { modeOf } from "../../src/rollout/project.ts";
import { withSourcesReadOnly } from "../../src/rollout/tracked-sources.ts";
import { linesOf, temporaryDirectory, writeScript } from "../harness/temporary.ts";

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

async function mark(directory: string, source: string, env: NodeJS.ProcessEnv = process.env) {
  const volumes = [{ type: "bind", source: join(directory, source), target: "/src" }];
  const model = { name: "shop", services: { app: { volumes }, worker: { volumes } } };
  const { services } = await withSourcesReadOnly(model, directory, env);
  assert.deepEqual(services.app, services.worker);
  return services.app?.volumes?.[0];
}

async function isCode(directory: string, source: string): Promise<boolean> {
  return (await mark(directory, source))?.read_only ?? false;
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

test("a repository that another user puts above a checkout of root runs nothing as root", {
  skip: !isRoot,
}, async (t) => {
  const above = temporaryDirectory(t);
  const seen = join(above, "seen");
  git(above, "init", "--quiet");
  write(above, { "app/src/app.js": "1" });
  git(above, "add", "app");
  git(above, "commit", "--quiet", "--message", "first");
  write(above, { ".git/info/attributes": "* filter=x\n" });
  git(above, "config", "filter.x.clean", `id -u >>${seen}; cat`);
  // Not known to be unchanged, so that git reads it.
  git(above, "rm", "--quiet", "--cached", "-r", "app");
  git(above, "read-tree", "HEAD");
  execFileSync("chown", ["-R", "1234:1234", join(above, ".git")]);
  chmodSync(above, 0o1777);
  rmSync(seen, { force: true });
  await mark(join(above, "app"), "src");
  assert.deepEqual([...new Set(linesOf(seen))], ["1234"]);
});

test("sources with a submodule are data, and git starts nothing that its repository names", async (t) => {
  const [directory, library] = [temporaryDirectory(t), temporaryDirectory(t)];
  for (const one of [directory, library]) git(one, "init", "--quiet");
  write(library, { "lib.js": "1" });
  git(library, "add", "--all");
  git(library, "commit", "--quiet", "--message", "first");
  write(directory, { "src/app.js": "1" });
  git(directory, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "src/lib");
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "first");
  const seen = join(library, "seen");
  git(join(directory, "src/lib"), "config", "filter.x.clean", `touch ${seen}; cat`);
  write(directory, { ".git/modules/src/lib/info/attributes": "* filter=x\n", "src/lib/lib.js": "1" });
  assert.equal(await isCode(directory, "src"), false);
  assert.equal(existsSync(seen), false);
});

test("a link among sources is no database", async (t) => {
  const directory = temporaryDirectory(t);
  git(directory, "init", "--quiet");
  write(directory, { "src/app.js": "1" });
  symlinkSync("app.js", join(directory, "src/main.js"));
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "first");
  assert.equal(await isCode(directory, "src"), true);
});

test("git looks once at a directory, and not at one with too many files", async (t) => {
  const [directory, bin] = [temporaryDirectory(t), temporaryDirectory(t)];
  const log = join(bin, "log");
  writeScript(join(bin, "git"), `#!/bin/sh\necho "$*" >> ${log}\nPATH=\${PATH#*:}\nexec git "$@"\n`);
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) };
  git(directory, "init", "--quiet");
  write(directory, { "src/app.js": "1" });
  const names = Array.from({ length: 2_001 }, (_, at) => [`many/${at}`, ""]);
  write(directory, Object.fromEntries(names));
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "first");
  assert.equal((await mark(directory, "src", env))?.read_only, true);
  assert.equal((await mark(directory, "many", env))?.read_only, undefined);
  assert.equal(readFileSync(log, "utf8").match(/ls-files/g)?.length, 2);
  assert.equal(readFileSync(log, "utf8").match(/ status /g)?.length, 1);
});

test("a mount is data if git cannot say what it is, and the reason says so", async (t) => {
  const directory = temporaryDirectory(t);
  git(directory, "init", "--quiet");
  write(directory, { "src/app.js": "1" });
  const volume = await mark(directory, "src", { PATH: "" });
  assert.equal(volume?.read_only, undefined);
  const mode = modeOf({ volumes: volume ? [volume] : [] }, false);
  assert.match(mode.how === "recreate" ? mode.reason : "", /^volume \/src \(without git/);
});
