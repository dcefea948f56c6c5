import assert from "node:assert/strict";
import { test } from "node:test";
import { machineCaddyfile } from "../../src/machine-part/caddyfile.ts";

test("a request that a container has begun to answer is never sent to another one", () => {
  const [, retry = ""] = /@unreached \{([\s\S]*?)\n\t\t\}/.exec(machineCaddyfile()) ?? [];
  assert.match(retry, /\.contains\("dial"\)/);
  assert.match(retry, /not path \/webhook \/webhook\/\{args\[0\]\}/, "nor is a delivery sent to the app");
});

test("a live file is read on each request, and no name can reach the public DNS", () => {
  assert.match(
    machineCaddyfile(),
    /reverse_proxy \{file\.\/run\/live\/\{args\[0\]\}\/\{args\[1\]\}\}:\{args\[2\]\}/,
  );
  assert.match(machineCaddyfile(), /\{args\[1\]\}\.\{args\[0\]\}\.containers\.internal:\{args\[2\]\}/);
});
