import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { operatorSocketPath } from "../../src/config/server.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { commandEnvironment, execute, launcher, type Target } from "../harness/hotpush.ts";
import { listenAt, listenHere } from "../harness/listen.ts";
import { makeRepository } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** Writes the clipboard, clears the screen in two ways, sets the title, and turns the direction of writing round. */
const hostile =
  " \u001b]52;c;ZXZpbA==\u0007\u001b[2J\u001b[35m\u009b2J\u001b]0;evil\u001b\\\u202e\u2067\u200f\r\b evil";
/** All that Hotpush itself sends to a terminal, which ends lines by carriage return and line feed. */
const esc = String.fromCharCode(27);
const usual = new RegExp(`\\r\\n|${esc}\\[(?:1|2|22|31|32|33|39)m`, "g");

const commands = [
  "status",
  "history",
  "logs 1",
  "logs -f 1",
  "deploy",
  "cancel",
  "rollback",
  "pause",
  "resume",
  "open",
  "open --list",
  "open --token x",
  "open --end 2",
  "notify --test",
].map((line) => line.split(" "));

test("no text of a commit, a person or a script steers the terminal, in any command", async (t) => {
  const { directory: repoPath } = makeRepository(t);
  const service = await startService(t, { repoPath, env: { PAGE_URL: "https://hotpush.example.com" } });
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const statePath = await standBefore(t, operatorSocketPath(service.statePath));
  for (const command of commands)
    await assertHarmless({ statePath }, command, /status|history/.test(command.join()) ? "]52;c;" : "");
  for (const command of commands.filter(([name]) => name !== "open"))
    assertClean(await run({ statePath }, [...command, "--json"]), `${command.join(" ")} --json`);
});

test("no refusal of a service, a server or a git host steers the terminal", async (t) => {
  const statePath = temporaryDirectory(t);
  const refuse = () =>
    createServer((_, response) => {
      response.writeHead(409, { "content-type": "application/problem+json" });
      response.end(JSON.stringify({ detail: hostile, title: hostile, code: hostile }));
    });
  await listenAt(t, refuse(), operatorSocketPath(statePath));
  const port = await listenHere(t, refuse());
  const file = join(statePath, "token");
  writeFileSync(file, "token", { mode: 0o600 });
  for (const command of commands) await assertHarmless({ statePath }, command, "evil");
  const remote = ["--server", `http://localhost:${port}`, "--token-file", file];
  for (const name of ["status", "history", "logs", "deploy", "pause"])
    await assertHarmless({ statePath }, [...remote, name], "evil");
  const { directory: cwd, git, write, commit } = makeRepository(t);
  write("README", "");
  commit();
  git("remote", "add", "origin", cwd);
  const env = { WEBHOOK_SECRET: "a secret of this test, long enough" };
  const send = ["send", "--dry-run", "--url", `http://127.0.0.1:${port}/webhook`];
  await assertHarmless({ statePath, env, cwd }, send, "");
});

/** Runs a command on a terminal. `shown` must be in its output. */
async function assertHarmless(target: Target, command: readonly string[], shown: string) {
  const output = await run(target, command, true);
  const what = command.join(" ");
  assertClean(output, what);
  assert.ok(output.includes(shown), `${what}: ${JSON.stringify(output)}`);
}

function assertClean(output: string, what: string): void {
  const rest = output.replaceAll(usual, "").replaceAll(/[\n\t]/g, "");
  assert.doesNotMatch(
    rest,
    /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u,
    `${what}: ${JSON.stringify(output)}`,
  );
}

/** @returns what it printed, on both streams */
async function run(target: Target, command: readonly string[], isTerminal = false): Promise<string> {
  const env = { ...commandEnvironment(target), TERM: "xterm", USER: "ann" };
  const line = [launcher, ...command].map((word) => `'${word}'`).join(" ");
  const args = ["--quiet", "--return", "--command", line, "/dev/null"];
  const [program, words] = isTerminal ? ["script", args] : [launcher, command];
  const { stdout, stderr } = await execute(program, words, { env, cwd: target.cwd ?? "/" });
  return stdout + stderr;
}

/** @returns the state directory of a service whose every text ends in a hostile one */
async function standBefore(t: TestContext, socketPath: string): Promise<string> {
  const statePath = temporaryDirectory(t);
  const server = createServer(async (incoming, response) => {
    const { method, url, headers } = incoming;
    const asked = request({ socketPath, method, path: url, headers: { ...headers, connection: "close" } });
    asked.end(await buffer(incoming));
    const [answer] = await once(asked, "response");
    const text = (await buffer(answer)).toString();
    const isLog = url?.includes("/log?") ?? false;
    const lines = text.split("\n").map((line) => (isLog || line === "" ? line : spoilt(line)));
    response.writeHead(answer.statusCode, { "content-type": answer.headers["content-type"] });
    response.end(lines.join("\n"));
  });
  await listenAt(t, server, operatorSocketPath(statePath));
  return statePath;
}

/** What commands decide by, or read as a time. */
const kept =
  /^(?:event|state|status|ref|commit|checkedOutCommit|trigger|result|kind|role|scope|.*At|at|since|link|secret)$/;

/** @param line JSON, or a server-sent event of it */
function spoilt(line: string): string {
  const [, before = "", json = ""] = /^(data: )?(.*)$/.exec(line) ?? [];
  const spoil = (key: string, value: unknown) =>
    typeof value === "string" && !kept.test(key) ? value + hostile : value;
  return before + JSON.stringify(JSON.parse(json), spoil);
}
