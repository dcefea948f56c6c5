import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { startAnswering } from "../harness/hotpush.ts";
import { type RunningPage, startPage } from "../harness/page.ts";
import { exchange } from "../harness/raw-http.ts";
import type { RunningService } from "../harness/service.ts";

/** Targets that are no path, no call, or another one once they are read in another way. */
const oddTargets = [
  "/api/commands//",
  "/api/commands///",
  "/api/commands//x/projects",
  "/api/commands/\\\\host/projects",
  "/api/commands/sessions",
  "/api/commands/tokens",
  "/api/commands/audit",
  "/api/commands/deployments/1/../../tokens",
  "/api/commands/%2e%2e/tokens",
  "/api/commands/projects%00",
  "/api/commands/constructor",
  "/api/commands?/projects",
];

test("requests that are no call end no process and reach nothing", async (t) => {
  const service = await startAnswering(t);
  const page = await startPage(t, service);
  for (const authorization of ["", `Authorization: Bearer ${page.token}\r\n`]) {
    for (const target of oddTargets) {
      for (const method of ["GET", "POST", "DELETE"]) {
        const head = `${method} ${target} HTTP/1.1\r\nHost: localhost:${page.port}\r\n${authorization}`;
        const { replies } = await exchange(page.port, `${head}Content-Length: 0\r\n\r\n`, { replyCount: 1 });
        assert.equal(Math.floor((replies[0]?.status ?? 0) / 100), 4, `${method} ${target}`);
      }
    }
  }
  await assertBothAlive(service, page);
});

test("members of a body that cannot become text are refused", async (t) => {
  const service = await startAnswering(t);
  const page = await startPage(t, service);
  const odd = { toString: 1, valueOf: 1 };
  const bodies = [{ link: odd }, { ref: odd }, { version: [odd] }, { reason: odd }, { id: odd }];
  const calls = ["deployments", "rollback", "pause", "deployments/1/cancel", "sessions", "sign-out"];
  for (const token of [page.token, null]) {
    for (const call of calls) {
      for (const body of bodies) {
        const status = await post(page, `/api/commands/${call}`, token, JSON.stringify(body));
        assert.equal(Math.floor(status / 100), 4, `${call} ${JSON.stringify(body)}: ${status}`);
      }
    }
  }
  await assertBothAlive(service, page);
});

async function post(page: RunningPage, path: string, token: string | null, body: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    const headers = {
      host: `localhost:${page.port}`,
      "content-length": Buffer.byteLength(body),
      ...(token && { authorization: `Bearer ${token}` }),
    };
    const sent = request({ host: "127.0.0.1", port: page.port, method: "POST", path, headers, agent: false });
    sent.on("response", (response) => resolve(response.resume().statusCode ?? 0)).on("error", reject);
    sent.end(body);
  });
}

async function assertBothAlive(service: RunningService, page: RunningPage): Promise<void> {
  assert.equal((await page.ask("GET /api/projects")).status, 200);
  assert.equal(service.child.exitCode, null);
  assert.equal(
    service.log.lines.find(({ event }) => event === "service.failed"),
    undefined,
  );
}
