import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { temporaryDirectory } from "./harness/temporary.ts";

const demoPath = fileURLToPath(new URL("../demo/main.ts", import.meta.url));

test("its closing table shows the final state of each push, and nothing is left behind", async (t) => {
  const directory = temporaryDirectory(t);
  const child = spawn(process.execPath, [demoPath], {
    env: { PATH: process.env.PATH, TERM: "xterm", TMPDIR: directory },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGTERM"));
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, "close")]);
  assert.equal(exitCode, 0, output);
  const [, rows = ""] = /^ +Deployment +Version .*\n((?: +\d.*\n)+)/m.exec(output) ?? [];
  const cells = rows
    .trimEnd()
    .split("\n")
    .map((row) => row.trim().split(/ {2,}/));
  assert.deepEqual(
    cells.map(([deployment, version, , state]) => [deployment, version, state]),
    [
      ["1", "2", "succeeded"],
      ["2", "3", "succeeded"],
      ["3", "4", "superseded by 4"],
      ["4", "5", "succeeded"],
    ],
  );
  assert.match(output, /^ +4 pushes accepted, 1 refused, 0 lost\.$/m);
  const left = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && environmentOf(name).includes(directory),
  );
  assert.deepEqual([readdirSync(directory), left], [[], []]);
});

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}
