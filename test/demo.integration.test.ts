import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Scope, temporaryDirectory } from "./harness/temporary.ts";

const demoPath = fileURLToPath(new URL("../demo/main.ts", import.meta.url));

test("its closing table shows the final state of each push, and nothing is left behind", async (t) => {
  const demo = startDemo(t);
  assert.equal(await demo.ended, 0, demo.output());
  assert.deepEqual(rowsOf(demo.output()), [
    ["1", "2", "succeeded"],
    ["2", "3", "succeeded"],
    ["3", "4", "superseded by 4"],
    ["4", "5", "succeeded"],
  ]);
  assert.match(demo.output(), /^ +4 pushes accepted, 1 refused, 0 lost\.$/m);
  assertNothingIsLeft(demo);
});

type Demo = ReturnType<typeof startDemo>;

/** Starts the demo with a temporary directory of its own. */
function startDemo(scope: Scope) {
  const directory = temporaryDirectory(scope);
  const child = spawn(process.execPath, [demoPath], {
    env: { PATH: process.env.PATH, TERM: "xterm", TMPDIR: directory },
    stdio: ["ignore", "pipe", "pipe"],
  });
  scope.after(() => child.kill("SIGTERM"));
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  const ended = once(child, "close").then(([exitCode]) => exitCode as number | null);
  return { directory, ended, output: () => text };
}

/** Deployment, version and state of each row of the closing table. */
function rowsOf(output: string): string[][] {
  const [, rows = ""] = /^ +Deployment +Version .*\n((?: +\d.*\n)+)/m.exec(output) ?? [];
  return rows
    .trim()
    .split("\n")
    .map((row) => row.trim().split(/ {2,}/))
    .map(([deployment = "", version = "", , state = ""]) => [deployment, version, state]);
}

function assertNothingIsLeft({ directory }: Demo): void {
  assert.deepEqual(readdirSync(directory), []);
  assert.deepEqual(processesWith(directory), []);
}

/** The command lines of the processes that have `directory` in their environment. */
function processesWith(directory: string): string[] {
  const read = (path: string) => {
    try {
      return readFileSync(path, "latin1").replaceAll("\0", " ");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/environ`).includes(directory))
    .map((pid) => `${pid}: ${read(`/proc/${pid}/cmdline`)}`);
}
