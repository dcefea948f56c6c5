import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { deployHead, makeProject } from "./project.ts";

test("the health check asks until the answer is 2xx", async (t) => {
  const project = await makeProject(t);
  const url = await answer(t, [503, 404, 204]);
  const { code, output } = await deployHead(project, { HEALTH_URL: url });
  assert.equal(code, 0, output);
  assert.match(output, /error: 503\ncurl: .* error: 404\n==> Done/);
});

test("a health check that stays bad fails the deployment and says why", async (t) => {
  const project = await makeProject(t);
  const url = await answer(t, [503]);
  const { code, output } = await deployHead(project, { HEALTH_URL: url, HEALTH_TIMEOUT: "1" });
  assert.equal(code, 1);
  assert.match(output, /error: 503\nFAILED: Not healthy after 1 s, for the reason above\.\n$/);
});

test("a failing healthcheck.sh fails the deployment", async (t) => {
  const project = await makeProject(t, { "healthcheck.sh": "#!/bin/sh\necho 'no database'\nexit 1\n" });
  const { code, output } = await deployHead(project, { HEALTH_TIMEOUT: "0" });
  assert.equal(code, 1);
  assert.match(output, /\nno database\nFAILED: Not healthy after 0 s, for the reason above\.\n$/);
});

/** Serves the statuses in turn, the last one for good. @returns the address */
async function answer(t: TestContext, statuses: readonly number[]): Promise<string> {
  let count = 0;
  const server = createServer((_request, response) => {
    response.writeHead(statuses[Math.min(count, statuses.length - 1)] ?? 500).end();
    count += 1;
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return `http://127.0.0.1:${address.port}/`;
}
