import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { answerProgram } from "../../../src/front/page/api.ts";
import type { RunClient, Visit } from "../../../src/front/page/run-client.ts";

test("the OpenAPI document, for which anybody may ask, is made once", async () => {
  const request = { method: "GET" } as IncomingMessage;
  const ask = () =>
    answerProgram(request, {} as Visit, {} as RunClient, "/openapi.json", new URLSearchParams());
  const first = await ask();
  assert.equal(first.kind === "body" && first.type, "application/json");
  assert.equal(await ask(), first);
});
