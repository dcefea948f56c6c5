import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { readNotifyFile } from "../../src/config/project.ts";
import { loadConfig } from "../../src/config/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const key = `whsec_${"k".repeat(32)}`;

test("each line of NOTIFY_FILE is a target, but for comments and empty lines", (t) => {
  const targets = readNotifyFile(
    fileWith(
      t,
      `# people\nslack https://hooks.slack.com/services/T0/B0/x\n\nwebhook http://ci:8000/hook ${key}\n`,
    ),
  );
  assert.ok(typeof targets !== "string");
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

for (const line of [
  "teams https://example.com/x",
  "slack ftp://example.com/x",
  "slack",
  "webhook https://example.com/secret",
  "webhook https://example.com/secret whsec_c2hvcnQ=",
  "slack https://example.com/secret a b",
]) {
  test(`the line "${line}" is refused without being repeated`, (t) => {
    const fault = readNotifyFile(fileWith(t, `${line}\n`));
    assert.ok(typeof fault === "string");
    assert.match(fault, /^NOTIFY_FILE names .*, whose line 1 /);
    assert.doesNotMatch(fault, /example\.com/);
  });
}

test("a file that other users can read is refused, with the command that fixes it", (t) => {
  const path = fileWith(t, "");
  chmodSync(path, 0o640);
  assert.equal(readNotifyFile(path), `NOTIFY_FILE: Other users can read ${path}. Run: chmod 600 ${path}`);
});

test("with a broken NOTIFY_FILE the project is served, and a warning says why", () => {
  const env = { WEBHOOK_SECRET: "s".repeat(32), STATE_PATH: "/tmp", NOTIFY_FILE: "/nowhere/notify" };
  const { project, warnings } = loadConfig(env);
  assert.deepEqual(project?.notify, { targets: [], on: "failures" });
  assert.deepEqual(warnings, ["NOTIFY_FILE: /nowhere/notify cannot be read (ENOENT). Nobody is notified."]);
});

function fileWith(t: TestContext, text: string): string {
  const path = join(temporaryDirectory(t), "notify");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
