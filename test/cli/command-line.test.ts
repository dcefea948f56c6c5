import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadProgram } from "../../src/cli/command-line.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { launcher, noServer, runCli } from "../harness/hotpush.ts";
import { makeProject } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";

const nothingHere = {
  PATH: process.env.PATH,
  HOME: "/",
  ...noServer,
  STATE_PATH: "/hotpush-test/state",
};

function hotpush(...args: readonly string[]) {
  return spawnSync(launcher, args, { encoding: "utf8", env: nothingHere });
}

for (const name of ["constructor", "--nonsense", ""]) {
  test(`"${name}" is not a command`, () => assert.equal(hotpush(name).status, 2));
}

/** main.ts starts them, in an environment. */
const halves = ["front", "run"];

test("help lists every command, and each has its usage with an example", async () => {
  const { status, stdout } = hotpush("--help");
  assert.equal(status, 0);
  const { commands } = await loadProgram({ env: {}, finish() {} });
  for (const command of commands) {
    const name = command.name();
    assert.match(stdout, new RegExp(`^ {2}${name} {2,}`, "m"));
    const texts: string[] = [];
    const writeOut = (text: string) => texts.push(text);
    command.configureOutput({ writeOut, getOutHelpWidth: () => 80 }).outputHelp();
    const help = texts.join("");
    assert.match(help, new RegExp(`^Usage: hotpush ${name} `));
    if (halves.includes(name)) assert.match(help, /docs\/projects\.md\.$/m);
    else assert.match(help, new RegExp(`^Examples:\n {2}hotpush ${name}`, "m"));
    for (const line of help.split("\n")) assert.ok(line.length <= 80, line);
  }
});

test("no command takes a secret as an argument, only its file", async () => {
  const program = await loadProgram({ env: {}, finish() {} });
  const taken = [program, ...program.commands.flatMap((one) => [one, ...one.commands])].flatMap(
    ({ options, registeredArguments }) => [
      ...options.filter(({ required, optional }) => required || optional).map(({ long }) => long ?? ""),
      ...registeredArguments.map((one) => one.name()),
    ],
  );
  const suspects = taken.filter((name) => /secret|token|password|key/.test(name));
  // A file, the name of a program that gets a token, a file.
  assert.deepEqual([...new Set(suspects)].sort(), ["--key", "--token", "--token-file"]);
});

test("logs --tail is refused without --service, whose lines it counts", () => {
  const { status, stderr } = hotpush("logs", "--tail", "5");
  assert.equal(status, 2);
  assert.match(stderr, /--service/);
});

test("a command that asks the service loads neither the roll-out nor the doctor, so that it answers at once", () => {
  const hooks = `import { registerHooks } from "node:module";
    registerHooks({ load: (url, context, next) => (console.error(url), next(url, context)) });`;
  const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
  const options = ["--import", `data:text/javascript,${encodeURIComponent(hooks)}`, main, "status"];
  const { status, stderr } = spawnSync(process.execPath, options, { encoding: "utf8", env: nothingHere });
  assert.equal(status, 1);
  assert.match(stderr, /cli\/status\.ts$/m);
  const parts = "rollout doctor setup/init projects notifications access run.ts config/service.ts";
  const files = "calls/handlers calls/server calls/status calls/streams platform/sqlite platform/docker";
  for (const path of `${parts} ${files}`.split(" ")) assert.ok(!stderr.includes(`/src/${path}`), path);
});

test("a deploy script has hotpush last in its PATH, and one that deploys does not wait for it", async (t) => {
  const script =
    '#!/bin/sh\necho "$PATH"\necho "$STATE_PATH"\nhotpush rollout --help\n[ "$DEPLOY_ID" != 1 ] || hotpush deploy\n';
  const project = makeProject(t);
  project.script(script);
  const service = await startService(t, { repoPath: project.repoPath });
  await deliver(service.url, githubPush());
  assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
  const [path = "", statePath, usage = ""] = service.log.outputOf(1);
  assert.ok(path.endsWith(`:${join(launcher, "..")}`), path);
  assert.equal(statePath, service.statePath);
  assert.match(usage, /^Usage: hotpush rollout/);
  writeFileSync(join(service.repoPath, ".env"), `STATE_PATH=${service.statePath}\n`);
  const { code } = await runCli(["status"], { cwd: service.repoPath });
  assert.equal(code, 0, "STATE_PATH is read from the .env of the working directory, as by the service");
});
