import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CommitStatus } from "../../src/config/commit-status.ts";
import { makeSecret } from "../../src/config/secret.ts";
import { findTokenFault } from "../../src/notifications/commit-status.ts";
import { startTarget } from "../harness/listen.ts";

/** What each host answers to a status on a commit that is not there, if the token may show one. */
const rightAnswers = { github: 422, gitea: 404, forgejo: 404, gitlab: 404, "bitbucket-cloud": 404 } as const;

for (const [host, status] of Object.entries(rightAnswers)) {
  test(`${host}: a token with the rights passes, and no commit is marked`, async (t) => {
    const { fault, requests } = await check(t, host as CommitStatus["host"], 200, status);
    assert.equal(fault, null);
    assert.deepEqual(
      requests.map(({ method }) => method),
      ["GET", "POST"],
    );
    assert.match(requests[1]?.path ?? "", /\/0{40}(?:\/|$)/);
  });

  test(`${host}: a token that may only read is found`, async (t) => {
    const { fault } = await check(t, host as CommitStatus["host"], 200, 403);
    assert.equal(fault, "the token may not show results on commits (403)");
  });
}

test("a token that is not valid, and one of another repository, are found by the first request", async (t) => {
  assert.equal((await check(t, "github", 401, 0)).fault, "the host does not accept the token (401)");
  const { fault, requests } = await check(t, "github", 404, 0);
  assert.equal(fault, "the token does not show the repository (404)");
  assert.equal(requests.length, 1);
});

test("at GitHub, a public repository that answers 404 to a status is not writable", async (t) => {
  const { fault } = await check(t, "github", 200, 404);
  assert.equal(fault, "the token may not show results on commits (404)");
});

async function check(t: TestContext, host: CommitStatus["host"], getStatus: number, postStatus: number) {
  const server = await startTarget(t, (response, { method }) => {
    response.writeHead(method === "GET" ? getStatus : postStatus).end("{}");
  });
  const url = new URL(`${server.url}/octo/app`);
  const fault = await findTokenFault({ host, url, token: makeSecret("a-token-of-a-host") });
  return { fault, requests: server.requests };
}
