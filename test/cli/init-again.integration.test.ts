import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { launcher } from "../harness/cli.ts";
import { needs } from "../harness/requirements.ts";
import { makeProject, snapshot } from "./init-project.ts";

test("a second run changes no byte, and --check agrees", async (t) => {
  const { repository, init } = makeProject(t);
  assert.equal((await init(["--check"])).code, 1);
  assert.equal(existsSync(join(repository.directory, ".env")), false, "--check writes nothing");
  await init(["--url", "https://shop.example.org"]);
  const before = snapshot(repository);
  for (const args of [[], ["--yes"], ["--check"], ["--url", "https://shop.example.org"]]) {
    const { code, stdout, stderr } = await init(args);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.doesNotMatch(stdout, /^(?:new|changed|mode) /m);
    assert.deepEqual(snapshot(repository), before);
  }
});

test("an existing .env keeps every line, and a good secret", async (t) => {
  const { repository, init, read } = makeProject(t);
  const lines = '# the database\nDB_PASSWORD="p w"\nWEBHOOK_SECRET=0123456789abcdef0123456789abcdef';
  const path = join(repository.directory, ".env");
  writeFileSync(path, lines, { mode: 0o644 });
  const { code, stdout } = await init();
  assert.equal(code, 0, stdout);
  assert.ok(read(".env").startsWith(`${lines}\n`));
  assert.doesNotMatch(stdout, /p w|0123456789abcdef/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a wrong file is shown as a difference, and changed only if somebody agrees", async (t) => {
  const { repository, init, read } = makeProject(t);
  await init();
  const right = snapshot(repository);
  repository.write("compose.hotpush.yaml", read("compose.hotpush.yaml").replace("8080:8080", "9999:9999"));
  repository.write(".env", read(".env").replace(/^REPO_PATH=.*$/m, "REPO_PATH=/elsewhere"));
  const wrong = snapshot(repository);
  const refused = await init();
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /^-REPO_PATH=\/elsewhere\n\+REPO_PATH=.*shop$/m);
  assert.match(refused.stdout, /^- {6}- "9999:9999"\n\+ {6}- "8080:8080"$/m);
  assert.match(refused.stderr, /\.env, compose\.hotpush\.yaml would be changed.*hotpush init --yes/);
  assert.deepEqual(snapshot(repository), wrong);
  assert.equal((await init(["--yes"])).code, 0);
  assert.deepEqual(snapshot(repository), right);
});

test("a deploy.sh of your own stays, and becomes executable", async (t) => {
  const { repository, init, read } = makeProject(t);
  repository.write("deploy.sh", "#!/bin/sh\necho mine\n");
  assert.equal((await init()).code, 0);
  assert.equal(read("deploy.sh"), "#!/bin/sh\necho mine\n");
  assert.equal(statSync(join(repository.directory, "deploy.sh")).mode & 0o777, 0o755);
});

/** Runs a command while something listens on 443. */
const while443IsTaken = `
const [program, ...args] = process.argv.slice(1);
const server = require("node:net").createServer().listen(443, "0.0.0.0", () => {
  process.exit(require("node:child_process").spawnSync(program, args, { stdio: "inherit" }).status);
});
`;

test("ports of the Caddy from an earlier run do not count as taken", needs("root"), async (t) => {
  const { repository, read, env } = makeProject(t);
  // Each in a network of its own, so that no other test takes the port or sees it taken.
  const inNetwork = (...command: readonly string[]) =>
    spawnSync("unshare", ["--net", ...command], { cwd: repository.directory, env, encoding: "utf8" });
  const init = [launcher, "init", "--alone", "--yes"];
  const again = (url: string) => inNetwork(process.execPath, "-e", while443IsTaken, ...init, "--url", url);
  const elsewhere = again("https://shop.example.org");
  assert.equal(elsewhere.status, 0, elsewhere.stderr);
  assert.doesNotMatch(read("compose.hotpush.yaml"), /443:443/);
  assert.equal(inNetwork(...init, "--url", "https://shp.example.org").status, 0);
  assert.match(read("compose.hotpush.yaml"), /"443:443"/);
  assert.equal(again("https://shop.example.org").status, 0);
  assert.match(read("compose.hotpush.yaml"), /"443:443"/);
  assert.match(parseEnv(read(".env")).SITE ?? "", /^shop\.example\.org/);
});

test("a new address is adopted after a question", async (t) => {
  const { init, read } = makeProject(t);
  await init();
  const args = ["--url", "http://shop.example.org:8080"];
  assert.equal((await init(args)).code, 1);
  assert.equal((await init([...args, "--yes"])).code, 0);
  assert.equal(parseEnv(read(".env")).WEBHOOK_URL, "http://shop.example.org:8080/webhook");
});
