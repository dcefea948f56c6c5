import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseEnv } from "node:util";
import { launcher } from "../harness/cli.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { makeProject } from "./init-project.ts";

test("at a terminal init asks for the address, shows the secret, and wraps no line", async (t) => {
  const terminal = startTerminal(t);
  if (terminal === null) return t.skip("it needs tmux");
  const { press, screen, joined, read } = terminal;
  await until("the question", () => screen().endsWith("Address:"));
  press("shop example", "Enter");
  await until("the refusal of a wrong answer", () => screen().includes("That is not an address."));
  press("https://shop.example.org", "Enter");
  await until("the end", () => screen().includes("ended with 0"));
  const { WEBHOOK_SECRET: secret = "none" } = parseEnv(read(".env"));
  assert.ok(screen().includes(secret), screen());
  assert.match(screen(), /Payload URL +https:\/\/shop\.example\.org\/webhook/);
  assert.equal(joined(), screen());
});

test("Ctrl-C at a question writes nothing, and init says so", async (t) => {
  const terminal = startTerminal(t);
  if (terminal === null) return t.skip("it needs tmux");
  const { press, screen, directory } = terminal;
  await until("the question", () => screen().endsWith("Address:"));
  press("C-c");
  await until("the end", () => screen().includes("ended with 1"));
  assert.match(screen(), /^hotpush: Nothing was written\.$/m);
  assert.equal(existsSync(join(directory, ".env")), false);
});

/** `hotpush init` in a real terminal of 80 columns; null if there is no tmux. */
function startTerminal(t: TestContext) {
  if (spawnSync("tmux", ["-V"]).error) return null;
  const { repository, read, env } = makeProject(t);
  const socket = join(temporaryDirectory(t), "tmux");
  const tmux = (...args: readonly string[]) =>
    spawnSync("tmux", ["-S", socket, ...args], { encoding: "utf8" }).stdout;
  t.after(() => tmux("kill-server"));
  const shell = `PATH='${env.PATH}' DOCKER_HOST='${env.DOCKER_HOST}' ${launcher} init --alone; echo "ended with $?"; read x`;
  tmux("new-session", "-d", "-x", "80", "-y", "60", "-c", repository.directory, shell);
  const shown = (...how: readonly string[]) =>
    tmux("capture-pane", "-p", ...how)
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  return {
    directory: repository.directory,
    read,
    press: (...keys: readonly string[]) => tmux("send-keys", ...keys),
    screen: () => shown(),
    /** The screen, with wrapped lines joined. */
    joined: () => shown("-J"),
  };
}
