import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseEnv } from "node:util";
import { type CliOptions, launcher, runCli } from "../harness/cli.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const root = join(import.meta.dirname, "../..");
const project = "services:\n  web:\n    build: web\n    ports: ['8080:3000']\n";
const model = {
  services: {
    web: {
      build: { context: "/elsewhere" },
      networks: { default: null },
      ports: [{ mode: "ingress", target: 3000, published: "8080", protocol: "tcp" }],
    },
  },
};

/** A repository with a remote at GitHub and, unless it is null, a compose file that compose reads as `services`. */
function makeProject(t: TestContext, services: object | null = model, name = "shop") {
  const repository = makeRepository(t, name);
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  if (services !== null) repository.write("compose.yaml", project);
  repository.commit();
  const bin = makeDocker(t, services);
  const env = { PATH: `${bin}:${process.env.PATH}`, DOCKER_HOST: `unix://${join(bin, "docker.sock")}` };
  const init = (args: readonly string[] = [], more: Partial<CliOptions> = {}) =>
    runCli(["init", ...args], { cwd: repository.directory, env, ...more });
  const read = (file: string) => readFileSync(join(repository.directory, file), "utf8");
  return { repository, init, read, env };
}

/**
 * A stand-in for Docker's command line: it gives the project as compose does, and has the image once it was built. The
 * real one is in test/e2e/first-deployment.test.ts.
 */
function makeDocker(t: TestContext, services: object | null): string {
  const bin = temporaryDirectory(t);
  writeFileSync(join(bin, "model.json"), JSON.stringify(services));
  const cases = [
    '"compose version"*) echo 2.40.3 ;;',
    `"compose --project"*) cat ${join(bin, "model.json")} ;;`,
    `"build "*) echo "$5" | sed s/.*=// >${join(bin, "image")} ;;`,
    `"image inspect"*) cat ${join(bin, "image")} 2>/dev/null ;;`,
    '*) echo "unexpected: $*" >&2; exit 9 ;;',
  ];
  writeScript(join(bin, "docker"), `#!/bin/sh\ncase "$*" in\n${cases.join("\n")}\nesac\n`);
  return bin;
}

/** Every file of a repository but git's, with its mode and content. */
function snapshot({ directory }: TestRepository): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(
    (entry) => !entry.isDirectory(),
  );
  const paths = files
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !path.includes("/.git/"));
  return Object.fromEntries(
    paths.map((path) => [path, `${lstatSync(path).mode.toString(8)} ${readFileSync(path, "utf8")}`]),
  );
}

test("a project with a compose file gets all that a push needs, and its own files stay", async (t) => {
  const { repository, init, read } = makeProject(t);
  const { code, stdout, stderr } = await init();
  assert.equal(code, 0, stderr);
  const env = parseEnv(read(".env"));
  assert.match(env.WEBHOOK_SECRET ?? "", /^[0-9a-f]{64}$/);
  assert.equal(statSync(join(repository.directory, ".env")).mode & 0o777, 0o600);
  assert.equal(env.REPO_PATH, repository.directory);
  assert.equal(env.REPOSITORY, "octo/shop");
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
  assert.match(stdout, /^Next:\n {2}docker compose up -d\n {2}npx hotpush send --dry-run\n$/m);
});

test("the secret is not shown where nobody sits at a terminal", async (t) => {
  const { init, read } = makeProject(t);
  const { stdout, stderr } = await init();
  const { WEBHOOK_SECRET: secret = "none" } = parseEnv(read(".env"));
  assert.ok(!`${stdout}${stderr}`.includes(secret));
  assert.match(stdout, /^ +Secret +the value of WEBHOOK_SECRET in \.env$/m);
});

test("run again it changes nothing, to the byte, and --check agrees", async (t) => {
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

test("from a sub-directory it is the same project, and spaces do no harm", async (t) => {
  const { repository, init, read } = makeProject(t, model, "my shop");
  const deep = join(repository.directory, "a dir/deeper");
  mkdirSync(deep, { recursive: true });
  assert.equal((await init([], { cwd: deep })).code, 0);
  assert.equal(parseEnv(read(".env")).REPO_PATH, repository.directory);
  assert.deepEqual(readdirSync(deep), []);
  assert.equal((await init(["--check"])).code, 0);
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

test("what is not right is shown as a difference, and changed only when somebody agrees", async (t) => {
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

test("a public address with https gets Caddy ports 80 and 443, where they are free", async (t) => {
  const { init, read } = makeProject(t);
  const { stdout } = await init(["--url", "shop.example.org"]);
  const { SITE, WEBHOOK_URL } = parseEnv(read(".env"));
  assert.equal(WEBHOOK_URL, "https://shop.example.org/webhook");
  assert.match(stdout, /^ +Payload URL +https:\/\/shop\.example\.org\/webhook$/m);
  if (SITE === "http://:8080") return t.skip("80 or 443 is taken on this machine");
  assert.equal(SITE, "shop.example.org, http://:8080");
  assert.match(read("compose.hotpush.yaml"), /"443:443\/udp"/);
});

test("another address given later is taken over, after a question", async (t) => {
  const { init, read } = makeProject(t);
  await init();
  const args = ["--url", "http://shop.example.org:8080"];
  assert.equal((await init(args)).code, 1);
  assert.equal((await init([...args, "--yes"])).code, 0);
  assert.equal(parseEnv(read(".env")).WEBHOOK_URL, "http://shop.example.org:8080/webhook");
});

test("a .env that is in the repository is refused before anything is written", async (t) => {
  const { repository, init } = makeProject(t);
  repository.write(".env", "A=1\n");
  repository.commit();
  const before = snapshot(repository);
  const { code, stderr } = await init(["--yes"]);
  assert.equal(code, 1);
  assert.match(stderr, /\.env is in the repository.*git rm --cached \.env/);
  assert.deepEqual(snapshot(repository), before);
});

test("a link out of the repository is refused, one within is followed", async (t) => {
  const { repository, init } = makeProject(t);
  const outside = join(temporaryDirectory(t), "secrets");
  writeFileSync(outside, "");
  const path = join(repository.directory, ".env");
  symlinkSync(outside, path);
  const { code, stderr } = await init(["--yes"]);
  assert.equal(code, 1);
  assert.match(stderr, /is a link that leads out of the repository, to .*secrets/);
  assert.equal(readFileSync(outside, "utf8"), "");
  assert.equal(existsSync(join(repository.directory, "deploy.sh")), false, "nothing else was written either");
  const inside = makeProject(t);
  const { directory } = inside.repository;
  mkdirSync(join(directory, "conf"));
  writeFileSync(join(directory, "conf/env"), "A=1\n");
  symlinkSync("conf/env", join(directory, ".env"));
  inside.repository.write(".gitignore", "conf/env\n.env\n");
  assert.equal((await inside.init()).code, 0);
  assert.ok(lstatSync(join(directory, ".env")).isSymbolicLink());
  assert.match(inside.read("conf/env"), /^A=1\n[\s\S]*WEBHOOK_SECRET=/);
});

test("without a compose file it becomes a service of the machine", async (t) => {
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

test("it works without a remote and with a detached head", async (t) => {
  const { repository, init, read } = makeProject(t);
  repository.git("remote", "remove", "origin");
  repository.git("checkout", "--quiet", "--detach");
  const { code, stdout } = await init();
  assert.equal(code, 0);
  assert.match(stdout, /^Remote +none$/m);
  assert.match(stdout, /The webhook at your git host \(say which with --host\):/);
  assert.equal(parseEnv(read(".env")).REPOSITORY, undefined);
  assert.match(read("compose.hotpush.yaml"), /REPOSITORY: \$\{REPOSITORY:-\}/);
});

for (const [url, host, expected] of [
  [
    "https://user:tok3n@code.example.org/a/b.git",
    "gitea",
    /https:\/\/code\.example\.org\/a\/b\/settings\/hooks\/gitea/,
  ],
  ["git@gitlab.com:a/b/c.git", null, /https:\/\/gitlab\.com\/a\/b\/c\/-\/hooks/],
  ["git@codeberg.org:a/b.git", null, /codeberg\.org\/a\/b\/settings\/hooks\/forgejo\/new/],
] as const) {
  test(`the form for ${new URL(url.replace("git@", "ssh://").replace(":a/", "/a/")).hostname} is that of its host`, async (t) => {
    const { repository, init, read } = makeProject(t);
    repository.git("remote", "set-url", "origin", url);
    const { stdout, stderr, code } = await init(host === null ? [] : ["--host", host]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, expected);
    assert.doesNotMatch(`${stdout}${read(".env")}`, /tok3n/);
    const { WEBHOOK_SECRET: secret = "", HOTPUSH_GIT_HOST } = parseEnv(read(".env"));
    assert.equal(HOTPUSH_GIT_HOST, host ?? undefined);
    if (url.includes("gitlab")) assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal((await init(["--check"])).code, 0);
  });
}

test("where the service answers already, a signed dry run ends it", async (t) => {
  const { repository, init, read } = makeProject(t);
  await init();
  const { WEBHOOK_SECRET = "", REPOSITORY = "" } = parseEnv(read(".env"));
  const service = await startService(t, { env: { WEBHOOK_SECRET, REPOSITORY } });
  await init(["--yes", "--url", service.url]);
  const { stdout } = await init();
  const commit = repository.git("rev-parse", "--short=7", "HEAD");
  assert.match(stdout, new RegExp(`A signed test push reached the service and would deploy ${commit}\\.\n$`));
});

test("what it cannot set up, it says", async (t) => {
  const nowhere = await runCli(["init"], { cwd: temporaryDirectory(t) });
  assert.deepEqual([nowhere.code, /is in no git checkout/.test(nowhere.stderr)], [1, true]);
  const twice = makeProject(t, { services: { hotpush: {}, ...model.services } });
  assert.match((await twice.init()).stderr, /has a service called hotpush/);
  const remote = makeProject(t);
  const { stderr } = await remote.init([], { env: { ...remote.env, DOCKER_HOST: "tcp://10.0.0.1:2376" } });
  assert.match(stderr, /run this on the server itself/);
  const unknown = makeProject(t);
  assert.match((await unknown.init(["--service", "app"])).stderr, /app is no service.*Those that do: web\./);
  assert.equal((await unknown.init(["--host", "sourceforge"])).code, 2);
  assert.equal((await unknown.init(["--url", "ftp://x"])).code, 2);
});

test("a project that compose does not take is told in compose's words", async (t) => {
  const { init, env } = makeProject(t);
  const docker = join(env.PATH.split(":")[0] ?? "", "docker");
  const failing =
    'case "$*" in *config*) echo "services.web.image must be a string" >&2; exit 15 ;; *) echo 2.40.3 ;; esac';
  writeScript(docker, `#!/bin/sh\n${failing}\n`);
  assert.match(
    (await init()).stderr,
    /Compose cannot read your project\. It says: services\.web\.image must/,
  );
  writeScript(docker, "#!/bin/sh\necho 2.20.0\n");
  assert.match((await init()).stderr, /Docker Compose is 2\.20\.0 here; 2\.24\.4 or newer is needed/);
  chmodSync(docker, 0o755);
});

test("at a terminal it asks for the address, shows the secret, and nothing wraps at 80 columns", async (t) => {
  const terminal = startTerminal(t);
  if (terminal === null) return t.skip("it needs tmux");
  const { press, screen, joined, read } = terminal;
  await until("the question", () => screen().endsWith("Address:"));
  press("shop example", "Enter");
  await until("a wrong answer is told", () => screen().includes("That is no address."));
  press("https://shop.example.org", "Enter");
  await until("the end", () => screen().includes("ended with 0"));
  const { WEBHOOK_SECRET: secret = "none" } = parseEnv(read(".env"));
  assert.ok(screen().includes(secret), screen());
  assert.match(screen(), /Payload URL +https:\/\/shop\.example\.org\/webhook/);
  assert.equal(joined(), screen());
});

test("Ctrl-C at a question writes nothing, and says so", async (t) => {
  const terminal = startTerminal(t);
  if (terminal === null) return t.skip("it needs tmux");
  const { press, screen, directory } = terminal;
  await until("the question", () => screen().endsWith("Address:"));
  press("C-c");
  await until("the end", () => screen().includes("ended with 1"));
  assert.match(screen(), /^hotpush: Nothing was written\.$/m);
  assert.equal(existsSync(join(directory, ".env")), false);
});

/** `hotpush init` in a real terminal of 80 columns; null where there is no tmux. */
function startTerminal(t: TestContext) {
  if (spawnSync("tmux", ["-V"]).error) return null;
  const { repository, read, env } = makeProject(t);
  const socket = join(temporaryDirectory(t), "tmux");
  const tmux = (...args: readonly string[]) =>
    spawnSync("tmux", ["-S", socket, ...args], { encoding: "utf8" }).stdout;
  t.after(() => tmux("kill-server"));
  const shell = `PATH='${env.PATH}' DOCKER_HOST='${env.DOCKER_HOST}' ${launcher} init; echo "ended with $?"; read x`;
  tmux("new-session", "-d", "-x", "80", "-y", "60", "-c", repository.directory, shell);
  const shown = (...how: readonly string[]) =>
    tmux("capture-pane", "-p", ...how)
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  return {
    directory: repository.directory,
    read,
    press: (...keys: readonly string[]) => tmux("send-keys", ...keys),
    screen: () => shown(),
    /** With lines that the terminal has wrapped put together again. */
    joined: () => shown("-J"),
  };
}
