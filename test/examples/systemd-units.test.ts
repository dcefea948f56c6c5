import "../harness/environment.ts";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const examples = join(import.meta.dirname, "../../examples/systemd");
const page = readFileSync(join(import.meta.dirname, "../../docs/projects.md"), "utf8");

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

  test(`docs/projects.md has the exposure that systemd computes for ${unit}`, needs("systemd"), () => {
    const [, level] =
      /exposure level for \S+: ([\d.]+)/.exec(analyze("security", "--offline=yes", join(examples, unit))) ??
      [];
    const [, documented] = new RegExp(`\`${unit}\`.* \\| ([\\d.]+) \\|`).exec(page) ?? [];
    assert.ok(
      Math.abs(Number(documented) - Number(level)) <= 0.3,
      `${documented} in the docs, ${level} here`,
    );
  });
}
