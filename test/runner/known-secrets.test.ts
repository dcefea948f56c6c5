import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import { isTooShort, redactedPartsOf } from "../../src/redaction/redactor.ts";
import { createScriptRedactor, findSecrets, findUnredacted } from "../../src/runner/known-secrets.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

test("secrets are found in the environment, .env, URLs and git settings, and no others", (t) => {
  const { sources, repoPath } = place(t, {
    HOTPUSH_TOKEN: "from the environment",
    EXTRA_PASSWORD: "named by DEPLOY_ENV",
    HTTPS_PROXY: "http://me:from%20a%20proxy@proxy:3128",
    NOT_PASSED_TOKEN: "the script never sees it",
    SSH_KEY: "/etc/passwd",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "http.extraheader",
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from("me:from-basic").toString("base64")}`,
  });
  execFileSync("git", ["init", "--quiet", repoPath]);
  const remote = "https://x-access-token:from-the-remote@git.example/app.git";
  execFileSync("git", ["-C", repoPath, "remote", "add", "origin", remote]);
  const alone = "https://glpat-a-token-without-a-name@git.example/app.git";
  execFileSync("git", ["-C", repoPath, "remote", "add", "second", alone]);
  execFileSync("git", ["-C", repoPath, "remote", "add", "third", "ssh://git@git.example/app.git"]);
  writeFileSync(
    join(repoPath, ".env"),
    "API_KEY='from .env'\nNODE_ENV=production\nDATABASE_URL=postgres://app:from-a-url@db/app\n",
  );
  const found = new Set(findSecrets(sources).map(({ value }) => value));
  assert.deepEqual(
    found,
    new Set([
      "the-current-secret",
      "the-previous-secret",
      "from the environment",
      "named by DEPLOY_ENV",
      "from%20a%20proxy",
      "from a proxy",
      Buffer.from("me:from-basic").toString("base64"),
      "from-basic",
      "from .env",
      "from-a-url",
      "from-the-remote",
      "glpat-a-token-without-a-name",
      "from-stored-passwords",
      "from-the-state",
    ]),
  );
});

test("git settings of a linked work tree and included files are found", (t) => {
  const { sources, repoPath } = place(t, {});
  const git = (...args: readonly string[]) => execFileSync("git", ["-C", repoPath, ...args]);
  git("init", "--quiet");
  git(
    "-c",
    "user.name=octo",
    "-c",
    "user.email=octo@example.org",
    "commit",
    "-q",
    "--allow-empty",
    "-m",
    "first",
  );
  git("config", "include.path", "../tokens.inc");
  git("config", "url.https://oauth2:from-a-rewritten-url@git.example/.insteadOf", "https://git.example/");
  writeFileSync(
    join(repoPath, "tokens.inc"),
    '[http]\n  extraHeader = "Authorization: Bearer from-an-include"\n',
  );
  git("worktree", "add", "--quiet", "../beside");
  const beside = { ...sources, repoPath: join(repoPath, "../beside") };
  for (const where of [sources, beside]) {
    const found = new Set(findSecrets(where).map(({ value }) => value));
    assert.ok(found.has("from-a-rewritten-url") && found.has("from-an-include"), [...found].join(", "));
  }
});

test("a secret file that a variable names is read, and no other file", (t) => {
  const { sources, repoPath } = place(t, {
    HOTPUSH_PASSWORD_FILE: "db_password",
    HOTPUSH_KEY_FILE: "pipe",
    HOTPUSH_TOKEN_FILE: "large",
    HOTPUSH_SECRET_FILE: "/nonexistent",
    HOTPUSH_CONFIG_FILE: "settings",
  });
  writeFileSync(join(repoPath, "db_password"), "from a file\n");
  writeFileSync(join(repoPath, "settings"), "no secret");
  writeFileSync(join(repoPath, "large"), "x".repeat(64 * 1024 + 1));
  execFileSync("mkfifo", [join(repoPath, "pipe")]);
  writeFileSync(join(repoPath, ".env"), "APP_KEY_FILE=app.key\n");
  writeFileSync(join(repoPath, "app.key"), "from a file that .env names");
  const found = findSecrets(sources).map(({ value }) => value);
  assert.ok(found.includes("from a file") && found.includes("from a file that .env names"), found.join(", "));
  assert.ok(!found.some((value) => value === "no secret" || value.startsWith("xxx")));
});

test("a pipe in place of the settings of git or Docker holds up nothing", (t) => {
  const { sources, repoPath } = place(t, {});
  const paths = [join(repoPath, ".git/config"), join(sources.env.HOME, ".docker/config.json")];
  for (const path of paths) {
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path, { force: true });
    execFileSync("mkfifo", [path]);
  }
  assert.doesNotThrow(() => findSecrets(sources));
});

test("passwords stored by docker login are found", (t) => {
  const { sources } = place(t, {});
  const auth = Buffer.from("me:secret-of-the-registry").toString("base64");
  mkdirSync(join(sources.env.HOME, ".docker"));
  writeFileSync(join(sources.env.HOME, ".docker/config.json"), JSON.stringify({ auths: { r: { auth } } }));
  const found = findSecrets(sources).map(({ value }) => value);
  assert.ok(found.includes(auth) && found.includes("secret-of-the-registry"), found.join(", "));
});

test(".env is read again for each redactor, because it may have changed", (t) => {
  const { sources, repoPath } = place(t, {});
  const path = join(repoPath, ".env");
  const currentRedactor = createScriptRedactor(sources);
  writeFileSync(path, "DB_PASSWORD=the-first-one\n");
  assert.equal(currentRedactor().text("the-first-one, the-second-one"), "***, the-second-one");
  assert.equal(currentRedactor(), currentRedactor());
  writeFileSync(path, "DB_PASSWORD=the-second-one\n");
  assert.equal(currentRedactor().text("the-first-one, the-second-one"), "the-first-one, ***");
});

test("short and common values are not redacted, and a warning names the short ones", (t) => {
  const { sources, repoPath } = place(t, {});
  const lines = [
    "A_TOKEN=short",
    "B_TOKEN=enough",
    "C_SECRET=true",
    "POSTGRES_PASSWORD=postgres",
    "D_KEY=",
    "E_KEY=42",
  ];
  writeFileSync(join(repoPath, ".env"), `${lines.join("\n")}\n`);
  const redactor = createScriptRedactor(sources)();
  assert.equal(redactor.text("short enough true postgres 42"), "short *** true postgres 42");
  const warnings = findUnredacted(sources);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? "",
    /^The value of A_TOKEN in \S+\/\.env has fewer than 6 characters, too few to be redacted/,
  );
});

test("each long line of a value is redacted, but no PEM boundary", () => {
  const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw";
  const key = `-----BEGIN PRIVATE KEY-----\n${line}\r\n  ${line}x\nMII=\n-----END PRIVATE KEY-----\n`;
  assert.deepEqual(redactedPartsOf(key), [line, `${line}x`]);
  assert.deepEqual(redactedPartsOf("  blanks around \n"), ["blanks around"]);
  assert.ok(isTooShort("five5"));
  assert.ok(isTooShort("line\nline"));
  assert.ok(!isTooShort("Production"));
});

function place(scope: Scope, given: Readonly<Record<string, string>>) {
  const home = temporaryDirectory(scope);
  const repoPath = join(home, "app");
  mkdirSync(repoPath);
  writeFileSync(join(home, ".git-credentials"), "https://me:from-stored-passwords@git.example\n");
  writeFileSync(join(home, "git-credentials"), "https://me:from-the-state@git.example\n");
  const secrets = {
    current: makeSecret("the-current-secret"),
    previous: makeSecret("the-previous-secret"),
  };
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: "1", STATE_PATH: home, ...given };
  const deployEnv = ["EXTRA_PASSWORD", "SSH_KEY"];
  return { repoPath, sources: { env, deployEnv, repoPath, secrets } };
}
