import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import "../harness/environment.ts";
import { after, test } from "node:test";

const entry = join(import.meta.dirname, "..", "lab", "hotpush.ts");
const state = mkdtempSync(join(tmpdir(), "hotpush-cli-"));
after(() => rmSync(state, { recursive: true }));

function hotpush(...args: readonly string[]) {
  const DOCKER_HOST = "unix:///nonexistent/docker.sock";
  const env = { PATH: process.env.PATH, DOCKER_HOST, STATE_PATH: state };
  return spawnSync(process.execPath, [entry, ...args], { encoding: "utf8", env });
}

const wrong = [
  ["rollout", "--unknown"],
  ["rollout", "--lock-wait", "soon"],
  ["rollout", "app", "--back"],
  ["rollout", "app", "--to", "3f2c1a9"],
  ["prune", "--keep", "many"],
  ["prune", "app"],
];

for (const args of wrong) {
  test(`hotpush ${args.join(" ")} ends with 2 and says where the usage is`, () => {
    const { status, stderr } = hotpush(...args);
    assert.equal(status, 2);
    assert.match(stderr, new RegExp(`^See: hotpush ${args[0]} --help`, "m"));
  });
}

for (const command of ["rollout", "prune"]) {
  test(`hotpush ${command} --help shows the usage`, () => {
    const { status, stdout } = hotpush(command, "--help");
    assert.equal(status, 0);
    assert.match(stdout, new RegExp(`^Usage: hotpush ${command} `));
  });

  test(`hotpush ${command} in a directory without a compose file says so`, () => {
    const { status, stdout, stderr } = hotpush(command, "--directory", import.meta.dirname);
    assert.equal(status, 1);
    assert.match(stdout + stderr, /cannot be read|no docker program/);
  });
}
