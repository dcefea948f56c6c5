import "../harness/environment.ts";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const examples = join(import.meta.dirname, "../../examples/systemd");

function analyze(...args: readonly string[]): string {
  const { stdout, stderr } = spawnSync("systemd-analyze", ["--no-pager", ...args], { encoding: "utf8" });
  return stdout + stderr;
}

for (const unit of readdirSync(examples)) {
  test(`systemd finds no fault in ${unit}`, needs("systemd"), (t) => {
    const path = join(temporaryDirectory(t), unit);
    const program = "/opt/hotpush/node_modules/.bin/node";
    writeFileSync(path, readFileSync(join(examples, unit), "utf8").replaceAll(program, process.execPath));
    assert.equal(analyze("verify", "--man=no", "--recursive-errors=no", path), "");
  });
}

test("the unit that faces the internet is exposed to at most 1.4 of 10", needs("systemd"), () => {
  const unit = join(examples, "hotpush-front.service");
  const report = analyze("security", "--offline=yes", unit);
  const level = Number(/exposure level for \S+: ([\d.]+)/.exec(report)?.[1]);
  // Versions of systemd differ by a few tenths.
  assert.ok(level <= 1.4, `${level}`);
});
