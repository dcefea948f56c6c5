import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { parseHostedRepository } from "../../src/config/git-hosts.ts";
import { readCommitStatus, readNotifyFile } from "../../src/config/project.ts";
import { loadConfig } from "../../src/config/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("the address of a repository names its host, or is refused", () => {
  for (const [text, host, href] of [
    ["https://github.com/octo/app", "github", "https://github.com/octo/app"],
    ["https://gitlab.com/octo/team/app.git", "gitlab", "https://gitlab.com/octo/team/app"],
    ["https://codeberg.org/octo/app/", "forgejo", "https://codeberg.org/octo/app"],
    ["gitea+http://gitea:3000/git/octo/app", "gitea", "http://gitea:3000/git/octo/app"],
    ["https://git.example.com/octo/app"],
    ["git@github.com:octo/app"],
    ["https://user:token@github.com/octo/app"],
    ["https://github.com/octo"],
    ["https://github.com/octo/app?x=1"],
  ] as const) {
    const repository = parseHostedRepository(text);
    assert.deepEqual([repository?.host, repository?.url.href], [host, href], text);
  }
});

test("the token is read without its line end and cannot be printed, and other text is refused", (t) => {
  const repository = parseHostedRepository("https://github.com/o/r");
  const status = readCommitStatus(repository, fileWith(t, "github_pat_1\n"));
  assert.ok(status !== null && !("fault" in status));
  assert.equal(status.token.reveal(), "github_pat_1");
  assert.doesNotMatch(inspect(status) + JSON.stringify(status), /github_pat_1/);
  const refused = readCommitStatus(repository, fileWith(t, "first\nsecond\n"));
  assert.ok(refused !== null && "fault" in refused);
  assert.match(refused.fault, /which is not one token on one line\.$/);
});

test("with half of the settings or a broken file the project is served, and warnings say why", () => {
  const { project, warnings } = loadConfig({
    WEBHOOK_SECRET: "s".repeat(32),
    STATE_PATH: "/tmp",
    COMMIT_STATUS_URL: "https://github.com/o/r",
    NOTIFY_FILE: "/nowhere/notify",
  });
  assert.equal(project?.commitStatus, null);
  assert.deepEqual(project?.notify, { targets: [], on: "failures" });
  assert.deepEqual(warnings, [
    "NOTIFY_FILE: /nowhere/notify cannot be read (ENOENT). Nobody is notified.",
    "COMMIT_STATUS_URL is set, and COMMIT_STATUS_TOKEN_FILE is not. No result is shown on a commit.",
  ]);
});

const key = `whsec_${"k".repeat(32)}`;

test("each line of NOTIFY_FILE is a target, but for comments and empty lines", (t) => {
  const text = `# people\nslack https://hooks.slack.com/services/T0/B0/x\n\nwebhook http://ci:8000/hook ${key}\n`;
  const targets = readNotifyFile(fileWith(t, text));
  assert.ok(!("fault" in targets));
  assert.deepEqual(
    targets.map(({ kind, url, key: own }) => [kind, url.reveal(), own?.reveal()]),
    [
      ["slack", "https://hooks.slack.com/services/T0/B0/x", undefined],
      ["webhook", "http://ci:8000/hook", key],
    ],
  );
  assert.match(targets[0]?.name ?? "", /^slack at hooks\.slack\.com \([0-9a-f]{4}\)$/);
  assert.doesNotMatch(inspect(targets, { depth: 9 }) + JSON.stringify(targets), /services|whsec_/);
});

test("a line that is no target is refused without being repeated", (t) => {
  for (const line of [
    "teams https://example.com/x",
    "slack ftp://example.com/x",
    "slack",
    "webhook https://example.com/secret",
    "webhook https://example.com/secret whsec_c2hvcnQ=",
    "slack https://example.com/secret a b",
  ]) {
    const read = readNotifyFile(fileWith(t, `${line}\n`));
    assert.ok("fault" in read, line);
    assert.match(read.fault, /^NOTIFY_FILE names .*, whose line 1 /, line);
    assert.doesNotMatch(read.fault, /example\.com/);
  }
});

function fileWith(t: TestContext, text: string): string {
  const path = join(temporaryDirectory(t), "file");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
