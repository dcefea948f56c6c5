import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Scope, temporaryDirectory, writeScript } from "./harness/temporary.ts";

const demoPath = fileURLToPath(new URL("../demo/main.ts", import.meta.url));
const readmePath = fileURLToPath(new URL("../README.md", import.meta.url));
const command = [process.execPath, demoPath] as const;
const longestMs = 60_000;

test("without a terminal", async (t) => {
  const demo = startDemo(t);
  assert.equal(await demo.ended, 0, demo.output());
  const output = demo.output();

  await t.test("its closing table shows the final state of each push", () => {
    assert.deepEqual(rowsOf(output), [
      ["1", "2", "succeeded"],
      ["2", "3", "succeeded"],
      ["3", "4", "superseded by 4"],
      ["4", "5", "succeeded"],
    ]);
    assert.match(output, /^ +4 pushes accepted, 1 refused, 0 lost\.$/m);
  });

  await t.test("it leaves no file and no process behind", () => assertNothingIsLeft(demo));

  await t.test("it is plain text of 80 columns at most", () => {
    assert.doesNotMatch(output, /[^\n -~]/);
    // The path of the temporary directory is as long as it is.
    const lines = output.replaceAll(demo.directory, "/tmp").split("\n");
    assert.deepEqual(
      lines.filter((line) => line.length > 80),
      [],
    );
  });

  await t.test("the sections it ends with are in the README", () => {
    const [, pointer = ""] = output.split("in README.md:");
    const sections = [...pointer.matchAll(/"([^"]+)"/g)].map(([, section]) => section);
    assert.equal(sections.length, 2);
    const headings = readFileSync(readmePath, "utf8").split("\n");
    for (const section of sections) assert.ok(headings.includes(`## ${section}`), section);
  });
});

test("on a terminal there are colours and a progress line, and the cursor is back at the end", async (t) => {
  if (spawnSync("script", ["--version"]).error) return t.skip("script is not installed (Debian: bsdutils)");
  const demo = startDemo(t, { command: onTerminal });
  assert.equal(await demo.ended, 0, demo.output());
  assert.ok(demo.output().includes("\u001b[1m\u001b[32m4 pushes accepted"));
  assert.ok(demo.output().includes("Setting up"));
  assert.ok(demo.output().lastIndexOf("\u001b[?25h") > demo.output().lastIndexOf("\u001b[?25l"));
});

test("a tour interrupted during a deployment leaves nothing behind", async (t) => {
  const demo = startDemo(t);
  await demo.until("While it builds, versions 4 and 5 are pushed.");
  assert.notDeepEqual(processesWith(demo.directory), []);
  demo.child.kill("SIGINT");
  assert.equal(await demo.ended, 130, demo.output());
  assert.match(demo.output(), /Interrupted by SIGINT/);
  assertNothingIsLeft(demo);
});

test("if a deployment fails, the tour prints what was expected, and the end of the log", async (t) => {
  const bin = temporaryDirectory(t);
  writeScript(join(bin, "tail"), "#!/bin/sh\nexit 9\n");
  const demo = startDemo(t, { env: { PATH: `${bin}:${process.env.PATH}` } });
  assert.equal(await demo.ended, 1, demo.output());
  assert.match(demo.output(), /The state of deployment 1 at its end: expected "succeeded", but saw "failed"/);
  assert.match(
    demo.output(),
    /^ +deployment\.failed: Deployment 1 failed: deploy\.sh ended with exit code 9/m,
  );
  assertNothingIsLeft(demo);
});

/** Gives the demo a terminal, as long as `script` runs. */
const onTerminal = ["script", "--quiet", "--return", "--command", command.join(" "), "/dev/null"] as const;

interface DemoOptions {
  readonly command?: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

type Demo = ReturnType<typeof startDemo>;

/** Starts the demo with a temporary directory of its own. */
function startDemo(scope: Scope, options: DemoOptions = {}) {
  const directory = temporaryDirectory(scope);
  const [program, ...args] = options.command ?? command;
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, TERM: "xterm", TMPDIR: directory, ...options.env },
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
  return { child, directory, ended, output: () => text, until };

  async function until(words: string): Promise<void> {
    while (!text.includes(words))
      await once(child.stdout, "data", { signal: AbortSignal.timeout(longestMs) });
  }
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
