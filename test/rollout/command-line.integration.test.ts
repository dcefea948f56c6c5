import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { needs } from "../harness/requirements.ts";
import { straced } from "../harness/straced.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

const entry = join(import.meta.dirname, "..", "lab", "hotpush.ts");
const state = mkdtempSync(join(tmpdir(), "hotpush-cli-"));
after(() => rmSync(state, { recursive: true }));

function hotpush(...args: readonly string[]) {
  return hotpushWith(process.env.PATH, ...args);
}

function hotpushWith(path: string | undefined, ...args: readonly string[]) {
  return runHotpush([], path, args);
}

function runHotpush(wrapper: readonly string[], path: string | undefined, args: readonly string[]) {
  const env = {
    PATH: path,
    DOCKER_HOST: "unix:///nonexistent/docker.sock",
    STATE_PATH: state,
  };
  const [program = "", ...rest] = [...wrapper, process.execPath, entry, ...args];
  return spawnSync(program, rest, { encoding: "utf8", env });
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

const nice = Math.max(10, getPriority());

test("a roll-out lowers its priority: what it starts is at nice 10 or more", (t) => {
  assert.match(rollOutWithDocker(t, "nice"), new RegExp(`cannot be read\\.\\n\\s+${nice}$`, "m"));
});

const hasAutogroups = autogroup() !== "";

test("its session has low priority too, if the kernel shares cores by session", {
  skip: !hasAutogroups && "this kernel does not",
}, (t) => {
  const untilSet = "for i in $(seq 100); do grep -q 'nice 0' /proc/$$/autogroup && sleep 0.05 || break; done";
  const told = rollOutWithDocker(t, `${untilSet}; cat /proc/$$/autogroup`);
  assert.match(told, new RegExp(`autogroup-\\d+ nice ${nice}$`, "m"));
});

test("if a sandbox forbids lower priority, the roll-out continues without it", needs("strace"), () => {
  const forbidden = straced("setpriority:error=EPERM");
  const { status, stdout } = runHotpush(forbidden, process.env.PATH, [
    "rollout",
    "--directory",
    import.meta.dirname,
  ]);
  assert.equal(status, 1);
  assert.match(stdout, /cannot be read|no docker program/);
});

/** Runs a roll-out with `commands` in place of docker. @returns what it reported, with their output */
function rollOutWithDocker(scope: Scope, commands: string): string {
  const directory = temporaryDirectory(scope);
  writeFileSync(join(directory, "compose.yaml"), "services: {}\n");
  writeScript(join(directory, "docker"), `#!/bin/sh\n{ ${commands}; } >&2\nexit 1\n`);
  return hotpushWith(`${directory}:${process.env.PATH}`, "rollout", "--directory", directory).stdout;
}

/** Empty if the kernel has no such thing, or has it turned off. */
function autogroup(): string {
  try {
    return readFileSync("/proc/self/autogroup", "utf8");
  } catch {
    return "";
  }
}
