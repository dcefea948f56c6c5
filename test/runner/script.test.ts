import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import { createProjectScript } from "../../src/runner/script.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

test("secrets of the settings, the environment, .env, git and Docker are redacted", (t) => {
  const { sources, repoPath, redact } = place(t, {
    HOTPUSH_TOKEN: "from the environment",
    EXTRA_PASSWORD: "named by DEPLOY_ENV",
    NOT_PASSED_TOKEN: "the script never sees it",
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from("me:from-basic").toString("base64")}`,
    HOTPUSH_PASSWORD_FILE: "db_password",
    HOTPUSH_CONFIG_FILE: "settings",
  });
  execFileSync("git", ["init", "--quiet", repoPath]);
  const remote = "https://x-access-token:from-the-remote@git.example/app.git";
  execFileSync("git", ["-C", repoPath, "remote", "add", "origin", remote]);
  writeFileSync(join(repoPath, "db_password"), "from a file\n");
  writeFileSync(join(repoPath, "settings"), "no secret");
  writeFileSync(join(repoPath, "app.key"), "from a file that .env names");
  writeFileSync(join(repoPath, ".env"), "API_KEY='from .env'\nNODE_ENV=staging-1\nAPP_KEY_FILE=app.key\n");
  const auth = Buffer.from("me:secret-of-the-registry").toString("base64");
  mkdirSync(join(sources.env.HOME, ".docker"));
  writeFileSync(join(sources.env.HOME, ".docker/config.json"), JSON.stringify({ auths: { r: { auth } } }));
  for (const secret of [
    "the-current-secret",
    "the-previous-secret",
    "from the environment",
    "named by DEPLOY_ENV",
    "from-basic",
    "from-the-remote",
    "from-stored-passwords",
    "from-the-state",
    "from a file",
    "from .env",
    "from a file that .env names",
    "secret-of-the-registry",
  ])
    assert.equal(redact(`> ${secret} <`), "> *** <");
  for (const text of ["the script never sees it", "no secret", "staging-1"]) assert.equal(redact(text), text);
});

test("a pipe in place of the settings of git or Docker holds up nothing", (t) => {
  const { sources, repoPath, redact } = place(t, {});
  for (const path of [join(repoPath, ".git/config"), join(sources.env.HOME, ".docker/config.json")]) {
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path, { force: true });
    execFileSync("mkfifo", [path]);
  }
  assert.equal(redact("as it is"), "as it is");
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
  const sources = { env, deployEnv: ["EXTRA_PASSWORD"], repoPath, secrets };
  return {
    repoPath,
    sources,
    redact: (text: string) => createProjectScript(sources)().redactor().text(text),
  };
}
