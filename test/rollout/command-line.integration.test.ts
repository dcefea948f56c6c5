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

test("wrong arguments end with 2 and say where the usage is", () => {
  for (const args of wrong) {
    const { status, stderr } = hotpush(...args);
    assert.equal(status, 2, args.join(" "));
    assert.match(stderr, new RegExp(`^See: hotpush ${args[0]} --help`, "m"));
  }
});

test("in a directory without a compose file, both commands say so", () => {
  for (const command of ["rollout", "prune"]) {
    const { status, stdout, stderr } = hotpush(command, "--directory", import.meta.dirname);
    assert.equal(status, 1);
    assert.match(stdout + stderr, /cannot be read|no docker program/);
  }
});
