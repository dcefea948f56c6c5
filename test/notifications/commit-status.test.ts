import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { parseHostedRepository, statusHosts } from "../../src/config/git-hosts.ts";
import type { CommitStatus } from "../../src/config/project.ts";
import { makeSecret } from "../../src/config/secret.ts";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import {
  repositoryAddress,
  type StatusOnCommit,
  sendCommitStatus,
  statusRequest,
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

for (const host of statusHosts) {
  test(`${host} gets the status of a commit with each documented field, and its own word`, async (t) => {
    const { path, headers, body, words } = expected[host];
    const server = await startTarget(t, (response) => void response.writeHead(201).end("{}"));
    assert.deepEqual(await send(t, host, server, { state: "failed" }), { kind: "delivered" });
    for (const state of states) await send(t, host, server, { state });
    const [request, ...others] = server.requests;
    assert.deepEqual([request?.method, request?.path, request?.json], ["POST", path, body]);
    assert.partialDeepStrictEqual(request?.headers, {
      "content-type": "application/json",
      "user-agent": "hotpush",
      ...headers,
    });
    assert.deepEqual(
      others.map(({ json }) => json.state),
      words,
    );
  });
}

test("GitLab's refusal of a state that it has counts as done", async (t) => {
  const text = JSON.stringify({ message: "Cannot transition status via :run from :running" });
  const server = await startTarget(t, (response) => void response.writeHead(400).end(text));
  assert.equal((await send(t, "gitlab", server, { state: "running" })).kind, "delivered");
  const other = await startTarget(t, (response) => void response.writeHead(400).end("{}"));
  assert.equal((await send(t, "gitlab", other, { state: "running" })).kind, "refused");
});

test("a pushed commit that is gone does not keep the result from the one that is live", async (t) => {
  const server = await startTarget(t, (response, { path }) => {
    response.writeHead(path.endsWith(commit) ? 404 : 201).end("{}");
  });
  const outcome = await send(t, "github", server, { state: "succeeded", checkedOutCommit: commitOf("two") });
  const commits = server.requests.map(({ path }) => path.split("/").at(-1));
  assert.deepEqual([outcome.kind, ...commits], ["refused", commit, commitOf("two")]);
});

test("a commit that is not there ends the attempts, and a wrong token does not", async (t) => {
  const server = await startTarget(t, (response) => void response.writeHead(404).end());
  assert.equal((await send(t, "github", server, { state: "failed" })).kind, "refused");
  const locked = await startTarget(t, (response) => void response.writeHead(401).end());
  assert.equal((await send(t, "github", locked, { state: "failed" })).kind, "failed");
});

test("without a page, Bitbucket gets a link to the commit, and the others none", async (t) => {
  for (const host of ["bitbucket-cloud", "github"] as const) {
    const server = await startTarget(t, (response) => void response.writeHead(201).end("{}"));
    await send(t, host, server, { state: "failed" }, null);
    const { url, target_url } = server.requests[0]?.json ?? {};
    assert.equal(
      url,
      host === "bitbucket-cloud" ? `${server.url}/git/octo/app/commits/${commit}` : undefined,
    );
    assert.equal(target_url, undefined);
  }
});

test("github.com and bitbucket.org have their API at a host of its own, and short limits", () => {
  const status: StatusOnCommit = {
    commit,
    branch: "main",
    context: `hotpush/${"p".repeat(39)}`,
    link: null,
    state: "failed",
    description: "d".repeat(999),
  };
  const shown = (text: string) => {
    const repository = parseHostedRepository(text) ?? assert.fail(text);
    const { path, body } = statusRequest(repository, status);
    return { address: repositoryAddress(repository) + path, body: body as Record<string, unknown> };
  };
  const one = shown("https://github.com/octo/app");
  assert.equal(one.address, `https://api.github.com/repos/octo/app/statuses/${commit}`);
  assert.equal(String(one.body.description).length, 140);
  const other = shown("https://bitbucket.org/octo/app.git");
  const api = "https://api.bitbucket.org/2.0/repositories/octo/app";
  assert.equal(other.address, `${api}/commit/${commit}/statuses/build`);
  assert.equal(String(other.body.key).length, 40);
});

async function send(
  t: TestContext,
  host: CommitStatus["host"],
  { url }: NotifyTargetServer,
  fields: Partial<Deployment>,
  shown: string | null = link,
) {
  const settings = { host, url: new URL(`${url}/git/octo/app`), token: makeSecret("a-token-of-a-host") };
  const deployment = { ...deploymentFor(t), ...fields };
  const problem = { code: "script_failed", detail: "The script ended with 7." } as const;
  const ended = deployment.state === "failed" ? { ...deployment, problem } : deployment;
  const report = { event: "ended", deployment: ended, isAfterFailure: false } as const;
  const message = { report, step: null, lastLines: [], link: shown };
  return await sendCommitStatus(settings, message, new AbortController().signal);
}

function deploymentFor(t: TestContext): Deployment {
  const store = temporaryStore(t).of("shop");
  const { deployment } = record(store, pushOf({ commit }));
  const found = findDeployment(store, deployment.id);
  assert.ok(found);
  return { ...found, startedAtMs: 1_000, finishedAtMs: 5_200 };
}
