import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { deliver, githubPush } from "../harness/delivery.ts";
import { openTestTerminal, type TestTerminal } from "../harness/hotpush.ts";
import { makeProject } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { letGo, type RunningService, startService } from "../harness/service.ts";

const colours = /\[[0-9;]*3[0-7]m/;
const script = `#!/bin/sh
echo "==> Build"
printf 'a line\\twith \\033[31mcolour\\033[0m, \\033]0;a title\\007 and a \\rreturn\\n'
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
echo done
`;

test(
  "no line wraps at 80 columns; states have colours, unless NO_COLOR or TERM says no",
  needs("tmux"),
  async (t) => {
    const { service, terminal } = await start(t);
    letGo(service.repoPath);
    await deliver(service.url, githubPush());
    await service.log.waitForEnding(1);
    terminal.type("clear; NO_COLOR=1 hotpush status; TERM=dumb hotpush status; echo over");
    await terminal.waitFor(/^over$/m);
    assert.doesNotMatch(terminal.raw(), colours);
    terminal.type("clear; hotpush status; hotpush history; hotpush cancel; hotpush --help; echo ended");
    await terminal.waitFor(/^ended$/m);
    assert.match(terminal.raw(), colours);
    assert.deepEqual(wrapped(terminal), []);
  },
);

test("following shows steps, and a script cannot steer the terminal", needs("tmux"), async (t) => {
  const { service, terminal } = await start(t);
  terminal.type("clear; hotpush deploy; echo exit $?");
  await terminal.waitFor(/^a line {4}with colour, {2}and a return$/m);
  letGo(service.repoPath);
  const after = await terminal.waitFor(/^exit 0$/m);
  assert.match(after, /^ {4}Build took /m);
  assert.match(after, /^Deployment 1 succeeded after .*: main is at [0-9a-f]{7}\.$/m);
});

test("Ctrl-C leaves the terminal clean and the deployment alone", needs("tmux"), async (t) => {
  const { service, terminal } = await start(t);
  terminal.type("clear; hotpush deploy; echo exit $?");
  await terminal.waitFor(/a return$/m);
  terminal.press("C-c");
  await terminal.waitFor(/^exit 130\nready>/m);
  const lines = terminal.screen();
  const [before, said, exit, prompt] = lines.slice(-4);
  assert.match(before ?? "", /a return$/, lines.join("\n"));
  assert.match(said ?? "", /^(?:\^C)?Deployment 1 goes on\. See it with: hotpush logs -f 1$/);
  assert.deepEqual([exit, prompt?.trim()], ["exit 130", "ready>"]);
  letGo(service.repoPath);
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
});

test("on a terminal a secret is shown in one line, so that it can be copied", needs("tmux"), async (t) => {
  const { service, terminal } = await start(t);
  terminal.type(
    `clear; cd ${service.repoPath}; printf 'WEBHOOK_SECRET=%040d\\n' 7 >.env; hotpush secret rotate`,
  );
  const text = await terminal.waitFor(/^ {2}hotpush secret drop-previous$/m);
  assert.match(text, /webhook to:\n {2}[0-9a-f]{64}\n/);
  assert.deepEqual(wrapped(terminal), []);
});

async function start(t: TestContext): Promise<{ service: RunningService; terminal: TestTerminal }> {
  const project = makeProject(t);
  project.script(script);
  const service = await startService(t, { repoPath: project.repoPath });
  return { service, terminal: openTestTerminal(t, { STATE_PATH: service.statePath }) };
}

/** The lines that were longer than the terminal is wide, except typed ones. */
function wrapped(terminal: TestTerminal): readonly string[] {
  const lines = terminal
    .raw()
    .split("\n")
    .map((line) => stripVTControlCharacters(line).trimEnd());
  return lines.filter((line) => line.length > 80 && !line.startsWith("ready>"));
}
