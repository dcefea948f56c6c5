import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { connectEngine } from "../../../src/platform/docker/engine.ts";
import { listenAt } from "../../harness/listen.ts";
import { isProblem } from "../../harness/problems.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("an engine that refuses, hangs or is not there is reported, with what to do", async (t) => {
  const paths = ["refuses", "hangs", "none"].map((name) => join(temporaryDirectory(t), name));
  const [refuses = "", hangs = "", none = ""] = paths;
  const refusal = '{"message":"no space left on device"}';
  await listenAt(
    t,
    createServer((_, response) => response.writeHead(500).end(refusal)),
    refuses,
  );
  await listenAt(
    t,
    createServer(() => {}),
    hangs,
  );
  for (const [path, code, says] of [
    [refuses, "docker_refused", /500 to GET \/info: no space left/],
    [hangs, "docker_unreachable", /no answer within 0\.5 s/],
    [none, "docker_unreachable", /Mount it into the container/],
  ] as const)
    await assert.rejects(connectEngine(`unix://${path}`, 500).get("/info"), isProblem(code, says));
});
