import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { launcher } from "../harness/hotpush.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { makeProject } from "./init-project.ts";

test("at a terminal init asks for the address until it gets one; Ctrl-C writes nothing", async (t) => {
  const terminal = startTerminal(t);
  if (terminal === null) return t.skip("it needs tmux");
  const { press, screen, directory, serverPath } = terminal;
  await until("the question", () => screen().endsWith("Address:"));
  press("shop example", "Enter");
  await until("the refusal of a wrong answer", () => screen().includes("That is not an address."));
  press("C-c");
  await until("the end", () => screen().includes("ended with 1"));
  assert.match(screen(), /^hotpush: Nothing was written\.$/m);
  assert.deepEqual([existsSync(join(directory, ".env")), existsSync(serverPath)], [false, false]);
});

/** `hotpush init` in a real terminal of 80 columns; null if there is no tmux. */
function startTerminal(t: TestContext) {
  if (spawnSync("tmux", ["-V"]).error) return null;
  const { repository, env } = makeProject(t);
  const socket = join(temporaryDirectory(t), "tmux");
  const tmux = (...args: readonly string[]) =>
    spawnSync("tmux", ["-S", socket, ...args], { encoding: "utf8" }).stdout;
  t.after(() => tmux("kill-server"));
  const variables = Object.entries(env).map(([name, value]) => `${name}='${value}'`);
  const shell = `${variables.join(" ")} ${launcher} init; echo "ended with $?"; read x`;
  tmux("new-session", "-d", "-x", "80", "-y", "60", "-c", repository.directory, shell);
  const screen = () =>
    tmux("capture-pane", "-p")
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  return {
    directory: repository.directory,
    serverPath: env.SERVER_PATH,
    press: (...keys: readonly string[]) => tmux("send-keys", ...keys),
    screen,
  };
}
