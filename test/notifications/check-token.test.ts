import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CommitStatus } from "../../src/config/project.ts";
import { makeSecret } from "../../src/config/secret.ts";
import { findTokenFault } from "../../src/notifications/commit-status.ts";
import { startTarget } from "../harness/listen.ts";

/** What each host answers to a status on a commit that is not there, if the token may show one. */
const rightAnswers = { github: 422, gitea: 404, forgejo: 404, gitlab: 404, "bitbucket-cloud": 404 } as const;

test("a token that may write passes without marking a commit, one that may only read does not", async (t) => {
  for (const [host, status] of Object.entries(rightAnswers)) {
    const { fault, requests } = await check(t, host as CommitStatus["host"], 200, status);
    assert.deepEqual([fault, ...requests.map(({ method }) => method)], [null, "GET", "POST"], host);
    assert.match(requests[1]?.path ?? "", /\/0{40}(?:\/|$)/);
    assert.match((await check(t, host as CommitStatus["host"], 200, 403)).fault ?? "", /403/);
  }
});

test("a token that is not valid, of another repository, or for a public one is found", async (t) => {
  for (const [getStatus, postStatus] of [
    [401, 0],
    [404, 0],
    [200, 404],
  ] as const) {
    const { fault, requests } = await check(t, "github", getStatus, postStatus);
    assert.match(fault ?? "", new RegExp(`${postStatus || getStatus}`));
    assert.equal(requests.length, postStatus === 0 ? 1 : 2);
  }
});

async function check(t: TestContext, host: CommitStatus["host"], getStatus: number, postStatus: number) {
  const server = await startTarget(t, (response, { method }) => {
    response.writeHead(method === "GET" ? getStatus : postStatus).end("{}");
  });
  const url = new URL(`${server.url}/octo/app`);
  const fault = await findTokenFault({ host, url, token: makeSecret("a-token-of-a-host") });
  return { fault, requests: server.requests };
}
