import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { launcher } from "../harness/hotpush.ts";
import { makeCheckout, makeServer } from "../harness/machine.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

const asAnother = needs("root", "otherUser");

test("a user who may use Docker gets the answer of the container of run", asAnother, (t) => {
  const { env, checkout } = forbidden(t);
  const docker = 'case $1 in inspect) echo true ;; exec) shift; echo "$*"; exit 7 ;; esac';
  const { status, stdout } = asNobody(
    checkout,
    { ...env, ...withDocker(t, docker), USER: "ann" },
    "logs",
    "-f",
  );
  assert.equal(status, 7, "its exit code");
  assert.match(
    stdout,
    /^--interactive --env USER=ann --env TZ=\S+ --env HOTPUSH_WITHIN=\d+\.\d+-\S+ hotpush-run-1 hotpush logs -f\n$/,
  );
});

test("a user who may use neither the socket nor Docker reads which commands work", asAnother, (t) => {
  const { env, checkout } = forbidden(t);
  const { status, stderr } = asNobody(checkout, { ...env, ...withDocker(t, "exit 1") }, "status");
  assert.equal(status, 1);
  assert.match(
    stderr,
    /^hotpush: Only root may .+ sudo hotpush status\..+ docker exec -it hotpush-run-1 hotpush status\n$/,
  );
  const sent = asNobody(checkout, env, "send");
  assert.match(sent.stderr, /^hotpush: The projects in .+ cannot be read\. Run this with sudo, or/);
});

/** A server of root, as another user finds it. */
function forbidden(scope: Parameters<typeof makeServer>[0]) {
  const { env, path, runStatePath, addProject } = makeServer(scope);
  const checkout = makeCheckout(scope);
  addProject("shop", checkout);
  for (const directory of [path, checkout]) chmodSync(directory, 0o755);
  for (const directory of [runStatePath, join(path, "projects")]) chmodSync(directory, 0o700);
  return { env, checkout };
}

/** A PATH whose `docker` runs `text`. */
function withDocker(scope: Parameters<typeof makeServer>[0], text: string) {
  const directory = temporaryDirectory(scope);
  chmodSync(directory, 0o755);
  writeScript(join(directory, "docker"), `#!/bin/sh\n${text}\n`);
  return { PATH: `${directory}:${process.env.PATH}` };
}

function asNobody(cwd: string, env: NodeJS.ProcessEnv, ...args: readonly string[]) {
  const [setpriv, ...options] = becomeNobody;
  const all = { PATH: process.env.PATH, HOME: "/", ...env };
  return spawnSync(setpriv, [...options, launcher, ...args], { cwd, env: all, encoding: "utf8" });
}
