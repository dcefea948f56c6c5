import assert from "node:assert/strict";
import { hostname } from "node:os";
import { type TestContext, test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import { sendDeployment } from "../../src/notifications/environment.ts";
import type { ReceivedRequest } from "../harness/notify-target.ts";
import { startTarget } from "../harness/notify-target.ts";
import { commitOf, pushOf, record, temporaryStore } from "../harness/store.ts";

const commit = commitOf("one");
const key = `${hostname()} shop 1.1`;
const api = { github: "/api/v3/repos/octo/app", gitlab: "/api/v4/projects/octo%2Fapp" } as const;

test("GitHub gets a deployment with each documented field, and a status when it starts", async (t) => {
  const host = await startHost(t, "github");
  assert.deepEqual(await host.send({ state: "running" }), { kind: "delivered" });
  const [list, made, status] = host.requests;
  assert.equal(list?.path, `${api.github}/deployments?sha=${commit}&environment=production`);
  assert.equal(made?.path, `${api.github}/deployments`);
  assert.deepEqual(made?.json, {
    ...{ ref: commit, environment: "production", auto_merge: false, required_contexts: [] },
    ...{ payload: { hotpush: key }, description: "Deployment 1 started" },
  });
  assert.equal(status?.path, `${api.github}/deployments/41/statuses`);
  assert.deepEqual(status?.json, {
    ...{ state: "in_progress", description: "Deployment 1 started" },
    ...{ log_url: "https://page.example.com/deployments/1", environment_url: "https://shop.example.com" },
  });
});

test("GitHub gets the result as a status of the same deployment, in its own words", async (t) => {
  for (const payload of [{ hotpush: key }, JSON.stringify({ hotpush: key })]) {
    const host = await startHost(t, "github", [
      { id: 7, payload: { hotpush: "other" } },
      { id: 12, payload },
    ]);
    const states = ["succeeded", "failed", "timed_out", "cancelled", "superseded", "skipped"] as const;
    for (const state of states) await host.send({ state });
    const posts = host.requests.filter(({ method }) => method === "POST");
    assert.deepEqual(
      new Set(posts.map(({ path }) => path)),
      new Set([`${api.github}/deployments/12/statuses`]),
    );
    const words = posts.map(({ json }) => json.state);
    assert.deepEqual(words, ["success", "failure", "failure", "error", "inactive"]);
  }
});

test("GitLab gets a deployment with each documented field when it starts", async (t) => {
  const host = await startHost(t, "gitlab");
  assert.deepEqual(await host.send({ state: "running" }), { kind: "delivered" });
  const [list, made] = host.requests;
  assert.equal(list?.path, `${api.gitlab}/deployments?environment=production&order_by=id&sort=desc`);
  assert.equal(made?.method, "POST");
  assert.equal(made?.path, `${api.gitlab}/deployments`);
  assert.deepEqual(made?.json, {
    ...{ environment: "production", sha: commit, ref: "main", tag: false, status: "running" },
  });
});

test("GitLab gets the result on the deployment that runs, and not twice", async (t) => {
  const host = await startHost(t, "gitlab", [{ id: 9, sha: commit, status: "running" }]);
  for (const state of ["succeeded", "failed", "cancelled"] as const) await host.send({ state });
  const puts = host.requests.filter(({ method }) => method === "PUT");
  assert.deepEqual(new Set(puts.map(({ path }) => path)), new Set([`${api.gitlab}/deployments/9`]));
  assert.deepEqual(
    puts.map(({ json }) => json),
    [{ status: "success" }, { status: "failed" }, { status: "canceled" }],
  );
  const done = await startHost(t, "gitlab", [{ id: 9, sha: commit, status: "success" }]);
  await done.send({ state: "succeeded" });
  assert.equal(done.requests.length, 1);
});

test("a host that answers nonsense, or refuses, has not taken the deployment", async (t) => {
  for (const text of ["<html>", '{"id": "../x"}', "[]", "null"]) {
    const host = await startHost(t, "github", text);
    assert.equal((await host.send({ state: "running" })).kind, "failed", text);
  }
  const locked = await startHost(t, "gitlab", [], 403);
  assert.deepEqual(await locked.send({ state: "running" }), {
    ...{ kind: "failed", fault: "it answered 403", waitMs: null },
  });
});

/** @param known what it lists, or the text of each answer */
async function startHost(
  t: TestContext,
  host: "github" | "gitlab",
  known: readonly object[] | string = [],
  status = 0,
) {
  const server = await startTarget(t, (response, { method }: ReceivedRequest) => {
    const isList = method === "GET";
    const text = typeof known === "string" ? known : JSON.stringify(isList ? known : { id: 41 });
    response.writeHead(status || (method === "POST" ? 201 : 200)).end(text);
  });
  const url = new URL(`${server.url}/octo/app`);
  const settings = { host, url, token: makeSecret("a-token-of-a-host") };
  const environment = { name: "production", url: "https://shop.example.com" };
  const deployment = deploymentFor(t);
  const { signal } = new AbortController();
  const link = "https://page.example.com/deployments/1";
  return {
    requests: server.requests,
    send(fields: Pick<Deployment, "state">) {
      const report = {
        event: "ended",
        deployment: { ...deployment, ...fields },
        isAfterFailure: false,
      } as const;
      return sendDeployment(settings, environment, { report, step: null, lastLines: [], link }, signal);
    },
  };
}

function deploymentFor(t: TestContext): Deployment {
  const store = temporaryStore(t).of("shop");
  const { deployment } = record(store, pushOf({ commit }));
  const found = findDeployment(store, deployment.id);
  assert.ok(found);
  return { ...found, attempts: 1 };
}
