import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { attempt } from "../src/platform/files.ts";
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
  const rows = output.matchAll(/^ +(\d) {2,}(\d) {2,}\S+ {2,}(.*?) {2,}/gm);
  assert.deepEqual(
    Array.from(rows, ([, ...cells]) => cells.join(" ")),
    ["1 2 succeeded", "2 3 succeeded", "3 4 superseded by 4", "4 5 succeeded"],
  );
  assert.match(output, /^ +4 pushes accepted, 1 refused, 0 lost\.$/m);
  const environmentOf = (pid: string) => attempt(() => readFileSync(`/proc/${pid}/environ`, "latin1"), "");
  const left = readdirSync("/proc").filter((name) => environmentOf(name).includes(directory));
  assert.deepEqual([readdirSync(directory), left], [[], []]);
});
