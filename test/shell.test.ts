import "./harness/environment.ts";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { needs } from "./harness/requirements.ts";

const root = join(import.meta.dirname, "..");

const scripts = shellScripts();
assert.ok(scripts.includes(".ci/run"), "git lists the scripts without the ending .sh as well");

for (const path of scripts) {
  test(`shellcheck finds nothing in ${path}`, needs("shellcheck"), () => {
    const { status, stdout, stderr } = spawnSync("shellcheck", [path], { cwd: root, encoding: "utf8" });
    assert.equal(status, 0, stdout + stderr);
  });
}

/** The shell scripts of the project that are there, by name or by first line. */
function shellScripts(): readonly string[] {
  const { status, stdout } = spawnSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" });
  assert.equal(status, 0, "git names the files of the checkout");
  return stdout.split("\0").filter((path) => path !== "" && existsSync(join(root, path)) && isShell(path));
}

function isShell(path: string): boolean {
  if (path.endsWith(".sh")) return true;
  if (/\.\w+$/.test(path)) return false;
  return /^#!\S*[/ ](?:env )?(?:ba|da)?sh\b/.test(readFileSync(join(root, path), "latin1"));
}
