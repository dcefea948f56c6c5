import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import { createProjectScript } from "../../src/runner/script.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("secrets of the settings, the environment, .env, git and Docker are redacted", (t) => {
  const home = temporaryDirectory(t);
  const repoPath = join(home, "app");
  mkdirSync(repoPath);
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    STATE_PATH: home,
    GIT_CONFIG_NOSYSTEM: "1",
    HOTPUSH_TOKEN: "from the environment",
    EXTRA_PASSWORD: "named by DEPLOY_ENV",
    NOT_PASSED_TOKEN: "the script never sees it",
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from("me:from-basic").toString("base64")}`,
    HOTPUSH_PASSWORD_FILE: "db_password",
    HOTPUSH_CONFIG_FILE: "settings",
  };
  const secrets = {
    current: makeSecret("the-current-secret"),
    previous: makeSecret("the-previous-secret"),
  };
  writeFileSync(join(home, ".git-credentials"), "https://me:from-stored-passwords@git.example\n");
  writeFileSync(join(home, "git-credentials"), "https://me:from-the-state@git.example\n");
  execFileSync("git", ["init", "--quiet", repoPath]);
  const remote = "https://x-access-token:from-the-remote@git.example/app.git";
  execFileSync("git", ["-C", repoPath, "remote", "add", "origin", remote]);
  writeFileSync(join(repoPath, "db_password"), "from a file\n");
  writeFileSync(join(repoPath, "settings"), "no secret");
  writeFileSync(join(repoPath, "app.key"), "from a file that .env names");
  writeFileSync(join(repoPath, ".env"), "API_KEY='from .env'\nNODE_ENV=staging-1\nAPP_KEY_FILE=app.key\n");
  const auth = Buffer.from("me:secret-of-the-registry").toString("base64");
  mkdirSync(join(home, ".docker"));
  writeFileSync(join(home, ".docker/config.json"), JSON.stringify({ auths: { r: { auth } } }));
  const script = createProjectScript({ env, deployEnv: ["EXTRA_PASSWORD"], repoPath, secrets })();
  const redact = (text: string) => script.redactor().text(text);
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
