import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { makeProject, model, project } from "./init-project.ts";

const root = join(import.meta.dirname, "../..");

test("a compose project gets all that a push needs, and its own files stay", async (t) => {
  const { repository, init, read } = makeProject(t);
  const { code, stdout, stderr } = await init();
  assert.equal(code, 0, stderr);
  const env = parseEnv(read(".env"));
  assert.match(env.WEBHOOK_SECRET ?? "", /^[0-9a-f]{64}$/);
  assert.equal(statSync(join(repository.directory, ".env")).mode & 0o777, 0o600);
  assert.equal(env.REPO_PATH, repository.directory);
  assert.equal(env.REPOSITORY, "octo/shop");
  assert.equal(env.BRANCH, "main");
  assert.equal(env.SITE, "http://:8080");
  assert.equal(env.WEBHOOK_URL, "http://127.0.0.1:8080/webhook");
  const files = ["compose.yaml", "compose.hotpush.yaml"].map((name) => join(repository.directory, name));
  assert.equal(env.COMPOSE_FILE, files.join(":"));
  assert.equal(repository.git("check-ignore", ".env"), ".env");
  assert.equal(read("deploy.sh"), readFileSync(join(root, "examples/deploy.sh"), "utf8"));
  assert.equal(statSync(join(repository.directory, "deploy.sh")).mode & 0o777, 0o755);
  assert.equal(read("compose.yaml"), project);
  assert.match(read("compose.hotpush.yaml"), /^ {2}web:\n(?: {4}#.*\n)* {4}ports: !reset \[\]$/m);
  assert.match(read("compose.hotpush.yaml"), /^ {6}- "8080:8080"$/m);
  assert.match(read("hotpush.Caddyfile"), /reverse_proxy \{file\.\/run\/live\/web\}:3000/);
  assert.match(stdout, /https:\/\/github\.com\/octo\/shop\/settings\/hooks\/new/);
  assert.match(stdout, /^ +Payload URL +http:\/\/<this server>:8080\/webhook$/m);
  assert.match(stdout, /^Next:\n {2}docker compose up -d\n {2}hotpush send --dry-run\n$/m);
});

test("hotpush.env, which git ignores, gives Hotpush what deploy.sh also needs", async (t) => {
  const { repository, init, read } = makeProject(t);
  const { stdout } = await init();
  const file = /^ {4}env_file:\n(?: {6}#.*\n)* {6}- path: (.*)\n {8}required: false$/m;
  assert.equal(file.exec(read("compose.hotpush.yaml"))?.[1], `\${REPO_PATH}/hotpush.env`);
  assert.equal(repository.git("check-ignore", "hotpush.env"), "hotpush.env");
  assert.match(stdout, /^new +\.gitignore +\.env and hotpush\.env stay out of git$/m);
  assert.equal(existsSync(join(repository.directory, "hotpush.env")), false, "it is a person's");
  repository.write("hotpush.env", "HOTPUSH_MIN_FREE=2 GiB\n");
  assert.equal((await init(["--check"])).code, 0);
});

test("init finds the project from a sub-directory, even with spaces in its path", async (t) => {
  const { repository, init, read } = makeProject(t, model, "my shop");
  const deep = join(repository.directory, "a dir/deeper");
  mkdirSync(deep, { recursive: true });
  assert.equal((await init([], { cwd: deep })).code, 0);
  assert.equal(parseEnv(read(".env")).REPO_PATH, repository.directory);
  assert.deepEqual(readdirSync(deep), []);
  assert.equal((await init(["--check"])).code, 0);
});

test("for a public https address Caddy gets ports 80 and 443 if they are free", async (t) => {
  const { init, read } = makeProject(t);
  const { stdout } = await init(["--url", "shop.example.org"]);
  const { SITE, WEBHOOK_URL } = parseEnv(read(".env"));
  assert.equal(WEBHOOK_URL, "https://shop.example.org/webhook");
  assert.match(stdout, /^ +Payload URL +https:\/\/shop\.example\.org\/webhook$/m);
  if (SITE === "http://:8080") return t.skip("80 or 443 is taken on this machine");
  assert.equal(SITE, "shop.example.org, http://:8080");
  assert.match(read("compose.hotpush.yaml"), /"443:443\/udp"/);
});

test("without a compose file Hotpush becomes a systemd service", async (t) => {
  const { repository, init, read } = makeProject(t, null, "a 100% shop");
  const { code, stdout, stderr } = await init();
  assert.equal(code, 0, stderr);
  const escaped = repository.directory.replaceAll("%", "%%");
  assert.ok(read("hotpush.service").includes(`\nWorkingDirectory=${escaped}\n`));
  assert.ok(read("hotpush.service").includes(`\nEnvironmentFile=${escaped}/.env\n`));
  assert.match(read("hotpush.service"), /^ExecStart=".*node" .* ".*main\.ts"$/m);
  assert.match(stdout, /sudo install -m 644 hotpush\.service/);
  assert.equal(repository.git("status", "--porcelain"), "?? .gitignore\n?? deploy.sh");
  assert.equal(existsSync(join(repository.directory, "compose.hotpush.yaml")), false);
  const verify = spawnSync("systemd-analyze", ["verify", join(repository.directory, "hotpush.service")], {
    encoding: "utf8",
  });
  if (verify.error === undefined) assert.doesNotMatch(verify.stderr, /hotpush\.service:\d+:/);
});

test("init works without a remote and with a detached head", async (t) => {
  const { repository, init, read } = makeProject(t);
  repository.git("remote", "remove", "origin");
  repository.git("checkout", "--quiet", "--detach");
  const { code, stdout } = await init();
  assert.equal(code, 0);
  assert.match(stdout, /^Remote +none$/m);
  assert.match(stdout, /The webhook at your git host \(name it with --host\):/);
  assert.equal(parseEnv(read(".env")).REPOSITORY, undefined);
  assert.match(read("compose.hotpush.yaml"), /REPOSITORY: \$\{REPOSITORY:-\}/);
});
