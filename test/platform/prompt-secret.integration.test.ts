import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { answer } from "../lab/clean-server.ts";

const module = join(import.meta.dirname, "../../src/platform/terminal.ts");

test("what is pasted as soon as a secret is asked for is not shown", async () => {
  const script = `import("${module}").then((one) => one.promptSecret("Token")).then((text) => console.log(text.length))`;
  const args = ["--quiet", "--return", "--command", `'${process.execPath}' -e '${script}'`, "/dev/null"];
  const child = spawn("script", args, { env: { ...process.env, SHELL: "/bin/sh" } });
  const { code, output } = await answer(child, [{ question: /Token/, text: "hidden-text" }]);
  assert.equal(code, 0, output);
  assert.match(output, /11/);
  assert.ok(!output.includes("hidden"));
});
