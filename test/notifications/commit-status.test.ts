import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { parseHostedRepository, statusHosts } from "../../src/config/git-hosts.ts";
import type { CommitStatus } from "../../src/config/project.ts";
import { makeSecret } from "../../src/config/secret.ts";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import {
  findTokenFault,
  repositoryAddress,
  sendCommitStatus,
} from "../../src/notifications/commit-status.ts";
import { type NotifyTargetServer, startTarget } from "../harness/listen.ts";
import { commitOf, pushOf, record, temporaryStore } from "../harness/store.ts";

const commit = commitOf("one");
const link = "https://page.example.com/deployments/1";
const states = ["running", "succeeded", "failed", "timed_out", "cancelled", "superseded", "skipped"] as const;

interface Expected {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  /** For each of `states`. */
  readonly words: readonly string[];
}

const description = "Deployment 1 failed after 4.2 s: The script ended with 7.";
const giteaLike = {
  path: `/git/api/v1/repos/octo/app/statuses/${commit}`,
  headers: { authorization: "token a-token-of-a-host" },
  body: { state: "failure", context: "hotpush/shop", description, target_url: link },
  words: ["pending", "success", "failure", "failure", "error", "error", "success"],
};
const expected: Readonly<Record<CommitStatus["host"], Expected>> = {
  github: {
    path: `/git/api/v3/repos/octo/app/statuses/${commit}`,
    headers: {
      authorization: "Bearer a-token-of-a-host",
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
    },
    body: { state: "failure", context: "hotpush/shop", description, target_url: link },
    words: giteaLike.words,
  },
  gitea: giteaLike,
  forgejo: giteaLike,
  gitlab: {
    path: `/api/v4/projects/git%2Focto%2Fapp/statuses/${commit}`,
    headers: { "private-token": "a-token-of-a-host" },
    body: { state: "failed", name: "hotpush/shop", ref: "main", description, target_url: link },
    words: ["running", "success", "failed", "failed", "canceled", "canceled", "success"],
  },
  "bitbucket-cloud": {
    path: `/git/2.0/repositories/octo/app/commit/${commit}/statuses/build`,
    headers: { authorization: "Bearer a-token-of-a-host" },
    body: { state: "FAILED", key: "hotpush/shop", name: "hotpush/shop", description, url: link },
    words: ["INPROGRESS", "SUCCESSFUL", "FAILED", "FAILED", "STOPPED", "STOPPED", "SUCCESSFUL"],
  },
};

/** What GitLab answers to a state that it has. */
const has = JSON.stringify({ message: "Cannot transition status via :run from :running" });

for (const host of statusHosts) {
  test(`${host} gets the status of a commit with each documented field, and its own word`, async (t) => {
    const { path, headers, body, words } = expected[host];
    const server = await startTarget(t);
    assert.deepEqual(await send(t, host, server, { state: "failed" }), { kind: "delivered" });
    // What was skipped for another reason than that it changes nothing gets no mark.
    await send(t, host, server, { state: "skipped" });
    // An attempt that was interrupted has left one.
    await send(t, host, server, { state: "skipped", attempts: 2 });
    for (const state of states) await send(t, host, server, { state, checkedOutCommit: commit });
    const [request, left, ...others] = server.requests;
    assert.equal(left?.json.state, words[4]);
    assert.deepEqual([request?.method, request?.path, request?.json], ["POST", path, body]);
    const usual = { "content-type": "application/json", "user-agent": "hotpush" };
    assert.partialDeepStrictEqual(request?.headers, { ...usual, ...headers });
    assert.equal(others.map(({ json }) => json.state).join(), words.join());
  });
}

for (const [what, host, status, text, kind] of [
  ["GitLab's refusal of a state that it has counts as done", "gitlab", 400, has, "delivered"],
  ["another refusal of it does not", "gitlab", 400, "{}", "refused"],
  ["a commit that is not there ends the attempts", "github", 404, "", "refused"],
  ["a wrong token does not end them", "github", 401, "", "failed"],
] as const)
  test(what, async (t) => {
    const server = await startTarget(t, (response) => void response.writeHead(status).end(text));
    assert.equal((await send(t, host, server, { state: "running" })).kind, kind);
  });

test("a pushed commit that is gone does not keep the result from the one that is live", async (t) => {
  const server = await startTarget(t, (response, { path }) => {
    response.writeHead(path.endsWith(commit) ? 404 : 201).end("{}");
  });
  const outcome = await send(t, "github", server, { state: "succeeded", checkedOutCommit: commitOf("two") });
  const commits = server.requests.map(({ path }) => path.split("/").at(-1));
  assert.deepEqual([outcome.kind, ...commits], ["refused", commit, commitOf("two")]);
});

test("without a page, Bitbucket gets a link to the commit, and the others none", async (t) => {
  for (const host of ["bitbucket-cloud", "github"] as const) {
    const server = await startTarget(t);
    await send(t, host, server, { state: "failed" }, null);
    const { url, target_url } = server.requests[0]?.json ?? {};
    const wanted = host === "github" ? undefined : `${server.url}/git/octo/app/commits/${commit}`;
    assert.deepEqual([url, target_url], [wanted, undefined]);
  }
});

test("github.com and bitbucket.org have their API at a host of its own, and short limits", async (t) => {
  for (const [text, api] of [
    ["https://github.com/octo/app", "https://api.github.com/repos/octo/app"],
    ["https://bitbucket.org/octo/app.git", "https://api.bitbucket.org/2.0/repositories/octo/app"],
  ] as const)
    assert.equal(repositoryAddress(parseHostedRepository(text) ?? assert.fail(text)), api);
  const server = await startTarget(t);
  const long = { project: "p".repeat(39), skipReason: "d".repeat(999) };
  await send(t, "bitbucket-cloud", server, { state: "skipped", checkedOutCommit: commit, ...long });
  const { key, description: text } = server.requests[0]?.json ?? {};
  assert.deepEqual([key.length, text.length], [40, 140]);
});

test("a token that may write passes without marking a commit, one that may only read does not", async (t) => {
  for (const host of statusHosts) {
    // What each answers to a status on a commit that is not there, if the token may show one.
    const { fault, requests } = await checkToken(t, host, 200, host === "github" ? 422 : 404);
    assert.deepEqual([fault, ...requests.map(({ method }) => method)], [null, "GET", "POST"], host);
    assert.match(requests[1]?.path ?? "", /\/0{40}(?:\/|$)/);
    assert.match((await checkToken(t, host, 200, 403)).fault ?? "", /403/);
  }
});

test("a token that is not valid, of another repository, or for a public one is found", async (t) => {
  for (const [getStatus, postStatus] of [
    [401, 0],
    [404, 0],
    [200, 404],
  ] as const) {
    const { fault, requests } = await checkToken(t, "github", getStatus, postStatus);
    assert.match(fault ?? "", new RegExp(`${postStatus || getStatus}`));
    assert.equal(requests.length, postStatus === 0 ? 1 : 2);
  }
});

async function checkToken(t: TestContext, host: CommitStatus["host"], getStatus: number, postStatus: number) {
  const server = await startTarget(t, (response, { method }) => {
    response.writeHead(method === "GET" ? getStatus : postStatus).end("{}");
  });
  return { fault: await findTokenFault(settingsOf(host, server)), requests: server.requests };
}

function settingsOf(host: CommitStatus["host"], { url }: NotifyTargetServer): CommitStatus {
  return { host, url: new URL(`${url}/git/octo/app`), token: makeSecret("a-token-of-a-host") };
}

async function send(
  t: TestContext,
  host: CommitStatus["host"],
  server: NotifyTargetServer,
  fields: Partial<Deployment>,
  shown: string | null = link,
) {
  const store = temporaryStore(t).of("shop");
  const { id } = record(store, pushOf({ commit })).deployment;
  const found = findDeployment(store, id) ?? assert.fail();
  const detail = "The script ended with 7.";
  const problem = fields.state === "failed" ? ({ code: "script_failed", detail } as const) : null;
  const deployment = { ...found, startedAtMs: 1_000, finishedAtMs: 5_200, problem, ...fields };
  const report = { event: "ended", deployment, isAfterFailure: false } as const;
  const message = { report, step: null, lastLines: [], link: shown };
  return await sendCommitStatus(settingsOf(host, server), message, new AbortController().signal);
}
