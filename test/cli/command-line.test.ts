import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { deliver, githubPush } from "../harness/delivery.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const launcher = fileURLToPath(new URL("../../bin/hotpush", import.meta.url));

function hotpush(...args: readonly string[]) {
  return spawnSync(launcher, args, { encoding: "utf8", env: { PATH: process.env.PATH, HOME: "/" } });
}

test("an unknown command is refused with exit code 2 and told what there is", () => {
  const { status, stderr, stdout } = hotpush("deploy");
  assert.equal(status, 2);
  assert.match(stderr, /there is no command "deploy"\.\n\nUsage: hotpush/);
  assert.equal(stdout, "");
});

for (const name of ["constructor", "--nonsense"]) {
  test(`${name} is no command`, () => assert.equal(hotpush(name).status, 2));
}

test("help says how each command is used", () => {
  const { status, stdout } = hotpush("--help");
  assert.equal(status, 0);
  for (const [, command = ""] of stdout.matchAll(/^ {2}hotpush (\w+)/gm)) {
    const help = hotpush(command, "--help");
    assert.equal(help.status, 0, help.stderr);
    assert.match(help.stdout, new RegExp(`^Usage: hotpush ${command} `));
  }
});

test("without a command it is the service, which refuses to start without a secret", () => {
  const { status, stderr } = hotpush();
  assert.equal(status, 78);
  assert.match(stderr, /WEBHOOK_SECRET/);
});

test("the launcher works through a link, from anywhere", (t) => {
  const link = join(temporaryDirectory(t), "hotpush");
  symlinkSync(launcher, link);
  const { status } = spawnSync(link, ["--help"], { cwd: "/" });
  assert.equal(status, 0);
});

test("a deploy script finds hotpush in its PATH, last, and the state directory of the service", async (t) => {
  const script = '#!/bin/sh\necho "$PATH"\necho "$STATE_PATH"\nhotpush rollout --help\n';
  const service = await startService(t, { script });
  const { json } = await deliver(service.url, githubPush());
  const id = json.deployment?.id ?? 0;
  assert.equal((await service.log.waitForEnding(id)).event, "deployment.succeeded");
  const [path = "", statePath, usage = ""] = service.log.outputOf(id);
  assert.ok(path.endsWith(`:${join(launcher, "..")}`), path);
  assert.equal(statePath, service.statePath);
  assert.match(usage, /^Usage: hotpush rollout/);
});
