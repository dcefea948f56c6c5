import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectEngine } from "../../../src/platform/docker/engine.ts";
import { listenAt } from "../../harness/listen.ts";
import { isProblem } from "../../harness/problems.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

/** An engine on a socket of its own that answers as `listener` says. */
async function engine(t: TestContext, listener: RequestListener, answerTimeoutMs?: number) {
  const path = join(temporaryDirectory(t), "docker.sock");
  await listenAt(t, createServer(listener), path);
  return connectEngine(`unix://${path}`, answerTimeoutMs);
}

test("a refusal carries the engine's own words", async (t) => {
  const refusing = await engine(t, (_, response) =>
    response.writeHead(500).end('{"message":"no space left on device"}'),
  );
  await assert.rejects(
    refusing.get("/info"),
    isProblem("docker_refused", /500 to GET \/info: no space left/),
  );
});

test("a missing socket is reported with what to do", async () => {
  const nowhere = connectEngine("unix:///nonexistent/docker.sock");
  await assert.rejects(nowhere.get("/info"), isProblem("docker_unreachable", /Mount it into the container/));
});

test("an engine that does not answer is reported, with the time waited", async (t) => {
  const hung = await engine(t, () => {}, 50);
  await assert.rejects(hung.get("/info"), isProblem("docker_unreachable", /no answer within 0\.05 s/));
});
