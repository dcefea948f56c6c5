import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { deliver, githubPush, testSecret } from "./harness/delivery.ts";
import { noServer } from "./harness/hotpush.ts";
import { npm, type Packed, pack } from "./harness/package.ts";
import { LogReader } from "./harness/processes.ts";
import { serviceEnvironment } from "./harness/service.ts";
import { temporaryDirectory, writeScript } from "./harness/temporary.ts";

const checkout = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };

/** Packed and installed once: a folder after `npm install hotpush`. */
const place = temporaryDirectory({ after });
const app = join(place, "app");
const bin = join(app, "node_modules/.bin");
let packed: Packed;

before(() => {
  packed = pack(place);
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), "{}");
  npm(app, "install", "--prefer-offline", "--no-audit", "--no-fund", join(place, packed.filename));
});

test("the package has the program, its documents and examples, and nothing else", () => {
  const expected =
    /^(?:LICENSE|README\.md|Dockerfile|\.dockerignore|package\.json|bin\/(?:hotpush|health|compile\.js)|(?:docs|examples)\/.+|dist\/.+\.js|dist\/package\.json|dist\/front\/page\/assets\/.+|dist\/setup\/templates\/.+|dist\/runner\/(?:supervisor|ssh-keygen-at)\.sh)$/;
  const paths = packed.files.map(({ path }) => path);
  assert.deepEqual(
    paths.filter((path) => !expected.test(path)),
    [],
  );
  // `hotpush init` builds the image from the Dockerfile.
  for (const path of ["LICENSE", "Dockerfile", "dist/main.js", "examples/deploy.sh", "docs/problems.md"])
    assert.ok(paths.includes(path), path);
  const executable = packed.files.filter(({ mode }) => (mode & 0o111) !== 0).map(({ path }) => path);
  const programs = [
    "bin/health",
    "bin/hotpush",
    "dist/runner/ssh-keygen-at.sh",
    "dist/runner/supervisor.sh",
    "examples/deploy.sh",
  ];
  assert.deepEqual(executable.sort(), programs);
  assert.ok(packed.size < 640 * 1024, `${packed.size} bytes`);
});

test("a service started from the package deploys a signed push, and its script finds hotpush", async (t) => {
  const repoPath = temporaryDirectory(t);
  writeScript(join(repoPath, "deploy.sh"), "#!/bin/sh\nhotpush --version\nhotpush rollout --help | sed 1q\n");
  const paths = { HOME: repoPath, REPO_PATH: repoPath, STATE_PATH: join(temporaryDirectory(t), "state") };
  const settings = { WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0", NODE_COMPILE_CACHE: "" };
  const env = { ...serviceEnvironment(), ...paths, ...settings };
  const child = spawn(join(bin, "hotpush"), { cwd: repoPath, env, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  const log = new LogReader(child);
  const { port } = await log.waitFor(({ event }) => event === "service.started");
  assert.match(
    readFileSync(`/proc/${child.pid}/cmdline`, "latin1"),
    /--max-semi-space-size=\d+\0--\0\S+dist\/main\.js/,
  );
  assert.equal((await deliver(`http://127.0.0.1:${port}`, githubPush())).status, 202);
  assert.equal((await log.waitForEnding(1)).event, "deployment.succeeded");
  assert.deepEqual(log.outputOf(1), [version, "Usage: hotpush rollout [options] [services...]"]);
  assert.ok(
    existsSync(join(app, "node_modules/hotpush/node_modules/.cache/compiled")),
    "compiled code is kept",
  );
});

test("if the machine's Node is too old, the package's own runs it", () => {
  const path = join(place, "old");
  mkdirSync(path);
  writeScript(join(path, "node"), "#!/bin/sh\necho v20.20.2\n");
  const env = { ...process.env, ...noServer, PATH: `${path}:${process.env.PATH}` };
  for (const isLinked of [true, false]) {
    // npm before 11.6 makes no link, because two packages have a program of that name.
    if (!isLinked) rmSync(join(bin, "node"), { force: true });
    const result = spawnSync(join(bin, "hotpush"), ["--version"], { cwd: app, env, encoding: "utf8" });
    assert.deepEqual([result.status, result.stdout], [0, `${version}\n`], result.stderr);
  }
});

test("npm ci makes the link to the Node of the optional package, if npm does not", (t) => {
  const directory = temporaryDirectory(t);
  cpSync(join(checkout, "bin"), join(directory, "bin"), { recursive: true });
  mkdirSync(join(directory, "node_modules/.bin"), { recursive: true });
  const name = `node_modules/node-linux-${process.arch}`;
  symlinkSync(join(checkout, name), join(directory, name));
  const env = { ...process.env, NODE_COMPILE_CACHE: join(directory, "compiled") };
  const { status, stderr } = spawnSync(process.execPath, ["bin/compile.js"], { cwd: directory, env });
  assert.equal(status, 0, String(stderr));
  assert.equal(
    realpathSync(join(directory, "node_modules/.bin/node")),
    realpathSync(join(checkout, name, "bin/node")),
  );
});
