import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { callRun } from "../../../src/calls/client.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { startAnswering } from "../../harness/hotpush.ts";
import { browse, signIn, startPage } from "../../harness/page.ts";
import { exchange } from "../../harness/raw-http.ts";
import { untilDeployment } from "../../harness/records.ts";
import { letGo, waitingScript } from "../../harness/service.ts";

test("what an operator starts is shown at once, and the audit log names them", async (t) => {
  const { service, page } = await start(t);
  const ann = await signIn(page, service);
  const cancelled = await ann.send("/deployments/1/cancel", {});
  assert.deepEqual([cancelled.status, cancelled.headers.location], [303, "/deployments/1"]);
  await untilDeployment(service.statePath, 1, ({ state }) => state === "cancelled");
  assert.match((await ann.get("/deployments/1")).text, /was cancelled/);
  const paused = await ann.send("/projects/default/pause", { reason: "lunch" });
  assert.equal(paused.headers.location, "/projects/default");
  assert.match((await ann.get("/projects/default")).text, /paused .*by Ann \(session 2\): lunch/s);
  assert.equal((await ann.send("/projects/default/resume", {})).status, 303);
  const { entries } = await callRun(service.statePath, "audit", {});
  assert.deepEqual(
    entries.map(({ action, visitor }) => `${visitor} ${action}`),
    ["resume", "pause", "cancel", "signIn"].map((action) => `Ann (session 2) ${action}`),
  );
});

test("a form that a viewer made up by hand is refused", async (t) => {
  const { service, page } = await start(t);
  const viewer = await signIn(page, service, { role: "viewer" });
  for (const path of ["/projects/default/deployments", "/projects/default/pause", "/deployments/1/cancel"])
    assert.equal((await viewer.send(path, {})).status, 403, path);
  letGo(service.repoPath);
});

test("a form that another site sends does nothing", async (t) => {
  const { service, page } = await start(t);
  const ann = await signIn(page, service);
  const origin = `http://localhost:${page.port}`;
  const foreign: readonly Record<string, string>[] = [
    {},
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `http://localhost:${page.port + 1}` },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    { origin, "sec-fetch-site": "cross-site" },
  ];
  for (const headers of foreign)
    assert.equal(
      (await ann.send("/deployments/1/cancel", {}, { headers })).status,
      403,
      JSON.stringify(headers),
    );
  for (const token of [null, "", "x.y", ".", "a".repeat(500)])
    assert.equal((await ann.send("/deployments/1/cancel", {}, { token })).status, 403, String(token));
  assert.equal(await stateOf(page), "running");
  letGo(service.repoPath);
});

test("the session of a browser gives no program the right to act", async (t) => {
  const { service, page } = await start(t);
  const { cookie } = await signIn(page, service);
  const fields = `Host: localhost:${page.port}\r\nCookie: ${cookie}\r\nContent-Length: 2`;
  // The others are that path once they are read as a URL.
  for (const prefix of ["", "/.", "/x/..", "/%2e", "/x/%2E%2e", "/.\\."]) {
    const head = `POST ${prefix}/api/deployments/1/cancel HTTP/1.1\r\n${fields}`;
    const { replies } = await exchange(page.port, `${head}\r\n\r\n{}`, { replyCount: 1 });
    assert.equal(replies[0]?.status, 401, head);
  }
  assert.equal(await stateOf(page), "running");
  letGo(service.repoPath);
});

test("a name that was rebound to this address reads nothing with a visitor's cookie", async (t) => {
  const { service, page } = await start(t);
  const ann = await signIn(page, service);
  for (const host of [
    "evil.example",
    `evil.example:${page.port}`,
    "localhost",
    `localhost.evil:${page.port}`,
  ]) {
    for (const path of ["/", "/deployments/1", "/api/projects", "/assets/x/page.css"]) {
      const { status, text } = await ann.get(path, { host });
      assert.equal(status, 421, `${host} ${path}`);
      assert.doesNotMatch(text, /default/);
    }
  }
  letGo(service.repoPath);
});

test("no path leads out of the assets or to another file", async (t) => {
  const { page } = await start(t);
  const nobody = browse(page, null);
  for (const path of [
    "/assets/x/../../settings.ts",
    "/assets/x/%2e%2e%2fsettings.ts",
    "/assets/x/..%5csettings.ts",
    "/assets/../package.json",
    "/assets/x/",
    "/assets//page.css",
    "/assets/x/page.css%00.js",
  ])
    assert.doesNotMatch((await nobody.get(path)).text, /import|"name"/, path);
});

test("every answer forbids what the page does not use", async (t) => {
  const { service, page } = await start(t);
  const ann = await signIn(page, service);
  for (const path of [
    "/",
    "/deployments/1",
    "/nothing",
    "/api/projects",
    "/sign-in?link=x",
    "/assets/x/page.js",
  ]) {
    const { headers } = await ann.get(path);
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /, path);
    assert.doesNotMatch(policy, /unsafe|\*|data:|https?:/, path);
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["access-control-allow-origin"], undefined);
  }
  letGo(service.repoPath);
});

async function start(t: TestContext) {
  const service = await startAnswering(t, { script: waitingScript });
  const page = await startPage(t, service);
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ event }) => event === "deployment.started");
  return { service, page };
}

async function stateOf(page: Awaited<ReturnType<typeof startPage>>): Promise<unknown> {
  return ((await page.ask("GET /api/deployments/1")).json.deployment as { state: unknown }).state;
}
