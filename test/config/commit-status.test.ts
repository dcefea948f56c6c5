import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { parseHostedRepository } from "../../src/config/git-hosts.ts";
import { readCommitStatus } from "../../src/config/project.ts";
import { loadConfig } from "../../src/config/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("the address of a repository names its host, or is refused", () => {
  for (const [text, host, href] of [
    ["https://github.com/octo/app", "github", "https://github.com/octo/app"],
    ["https://gitlab.com/octo/team/app.git", "gitlab", "https://gitlab.com/octo/team/app"],
    ["https://codeberg.org/octo/app/", "forgejo", "https://codeberg.org/octo/app"],
    ["https://gitea.com/octo/app", "gitea", "https://gitea.com/octo/app"],
    ["gitea+http://gitea:3000/git/octo/app", "gitea", "http://gitea:3000/git/octo/app"],
    ["https://git.example.com/octo/app"],
    ["git@github.com:octo/app"],
    ["https://user:token@github.com/octo/app"],
    ["https://github.com/octo"],
    ["https://github.com/octo/app?x=1"],
    ["svn+https://github.com/octo/app"],
  ] as const) {
    const repository = parseHostedRepository(text);
    assert.deepEqual([repository?.host, repository?.url.href], [host, href], text);
  }
});

test("the token is read without its line end, and cannot be printed", (t) => {
  const status = readCommitStatus(
    parseHostedRepository("https://github.com/o/r"),
    tokenFile(t, "github_pat_1\n"),
  );
  assert.ok(status !== null && typeof status !== "string");
  assert.equal(status.token.reveal(), "github_pat_1");
  assert.doesNotMatch(inspect(status) + JSON.stringify(status), /github_pat_1/);
});

test("a file that holds something else than a token is refused without being shown", (t) => {
  const status = readCommitStatus(
    parseHostedRepository("https://github.com/o/r"),
    tokenFile(t, "first\nsecond\n"),
  );
  assert.match(String(status), /which is not one token on one line\.$/);
});

test("with half of the settings the project is served, and a warning says what is missing", () => {
  const env = {
    WEBHOOK_SECRET: "s".repeat(32),
    STATE_PATH: "/tmp",
    COMMIT_STATUS_URL: "https://github.com/o/r",
  };
  const { project, warnings } = loadConfig(env);
  assert.equal(project?.commitStatus, null);
  assert.deepEqual(warnings, [
    "COMMIT_STATUS_URL is set, and COMMIT_STATUS_TOKEN_FILE is not. No result is shown on a commit.",
  ]);
});

function tokenFile(t: TestContext, text: string): string {
  const path = join(temporaryDirectory(t), "token");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
