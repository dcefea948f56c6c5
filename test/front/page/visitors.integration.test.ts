import assert from "node:assert/strict";
import { test } from "node:test";
import { callRun } from "../../../src/calls/client.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import {
  browse,
  callAsPage,
  cookieOf,
  makeSignInLink,
  signIn,
  startPage,
  tokenIn,
} from "../../harness/page.ts";
import { exchange } from "../../harness/raw-http.ts";
import { untilDeployment } from "../../harness/records.ts";
import { startService, waitingScript } from "../../harness/service.ts";

const service = await startService(test, { script: waitingScript });
const page = await startPage(test, service);
await deliver(service.url, githubPush());
await service.log.waitFor(({ event }) => event === "deployment.started");
const nobody = browse(page, null);

async function assertRunning(): Promise<void> {
  const { deployment } = (await page.ask("GET /api/deployments/1")).json;
  assert.equal((deployment as { readonly state: unknown }).state, "running");
}

test("a link shows a button, which uses it up, and opens nothing a second time", async () => {
  const link = await makeSignInLink(service);
  // A chat program fetches what it shows.
  for (let preview = 0; preview < 3; preview += 1)
    assert.match((await nobody.get(`/sign-in?link=${link}`)).text, /<button[^>]*>Sign in<\/button>/);
  const { status, headers } = await nobody.send("/sign-in", { link }, { token: null });
  assert.deepEqual([status, headers.location], [303, "/"]);
  assert.match(
    headers["set-cookie"]?.[0] ?? "",
    /^hotpush=hps_[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=34560000$/,
  );
  const { text } = await browse(page, cookieOf(headers)).get("/");
  assert.match(text, /Ann<\/span><small[^>]*>operator/);
  const again = await nobody.send("/sign-in", { link }, { token: null });
  assert.deepEqual([again.status, again.headers["set-cookie"]], [401, undefined]);
  assert.match(again.text, /This link opens nothing/);
});

test("a session that was planted in the browser is never the one signed in", async () => {
  const planted = `hotpush=hps_${"A".repeat(43)}`;
  const link = await makeSignInLink(service);
  const { headers } = await browse(page, planted).send("/sign-in", { link }, { token: null });
  assert.notEqual(cookieOf(headers), planted);
  assert.equal((await browse(page, planted).get("/")).status, 401);
  assert.equal((await browse(page, cookieOf(headers)).get("/")).status, 200);
});

test("signing in and out leads nowhere else, whatever is asked for", async () => {
  const link = await makeSignInLink(service);
  const fields = { link, next: "//evil.example", redirect: "/\\evil.example" };
  const { headers } = await nobody.send("/sign-in?next=//evil.example", fields, { token: null });
  assert.equal(headers.location, "/");
  const ann = browse(page, cookieOf(headers));
  for (const path of ["//evil.example/", "/%2f%2fevil.example", "///", "/\\evil.example"]) {
    const answer = await ann.get(path);
    assert.equal(answer.headers.location, undefined, path);
    assert.notEqual(answer.status, 500, path);
  }
  const out = await ann.send("/sign-out", { next: "//evil.example" });
  assert.deepEqual([out.status, out.headers.location], [303, "/"]);
  assert.match(out.headers["set-cookie"]?.[0] ?? "", /^hotpush=; .*Max-Age=0$/);
  assert.equal((await ann.get("/")).status, 401, "a copy of the cookie is worth nothing");
});

test("headers that name a person sign nobody in", async () => {
  for (const name of ["remote-user", "x-forwarded-user", "x-auth-request-email", "tailscale-user-login"]) {
    const { status, text } = await nobody.get("/", { [name]: "ada@example.com" });
    assert.equal(status, 401, name);
    assert.match(text, /hotpush open/);
  }
});

test("no credential of another kind is taken for a session", async () => {
  const link = await makeSignInLink(service);
  for (const wrong of [link, page.token.replace("hpt_", "hps_"), "", "x".repeat(101)])
    assert.equal((await browse(page, `hotpush=${wrong}`).get("/")).status, 401, wrong);
  assert.equal((await callAsPage(service, "GET /projects", { credential: link })).status, 401);
});

test("a form of one session is worth nothing in another", async () => {
  const ann = await signIn(page, service);
  const ben = await signIn(page, service, { name: "Ben" });
  const token = tokenIn((await ann.get("/projects/default")).text);
  assert.ok(token);
  assert.equal((await ben.send("/projects/default/pause", {}, { token })).status, 403);
  assert.equal((await ann.send("/projects/default/pause", {}, { token })).status, 303);
  assert.equal((await ann.send("/projects/default/resume", {})).status, 303);
});

test("a form that a viewer made up by hand is refused", async () => {
  const viewer = await signIn(page, service, { role: "viewer" });
  for (const path of ["/projects/default/deployments", "/projects/default/pause", "/deployments/1/cancel"])
    assert.equal((await viewer.send(path, {})).status, 403, path);
});

test("a form that another site sends does nothing", async () => {
  const ann = await signIn(page, service);
  const origin = `http://localhost:${page.port}`;
  const foreign: readonly Record<string, string>[] = [
    {},
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `http://localhost:${page.port + 1}` },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "none" },
    { origin, "sec-fetch-site": "same-site" },
  ];
  for (const headers of foreign) {
    const { status } = await ann.send("/deployments/1/cancel", {}, { headers });
    assert.equal(status, 403, JSON.stringify(headers));
  }
  for (const token of [null, "", "x.y", "a".repeat(500)])
    assert.equal((await ann.send("/deployments/1/cancel", {}, { token })).status, 403, String(token));
  await assertRunning();
});

test("the session of a browser gives no program the right to act", async () => {
  const { cookie } = await signIn(page, service);
  const fields = `Host: localhost:${page.port}\r\nCookie: ${cookie}\r\nContent-Length: 2`;
  // The others are that path once they are read as a URL.
  for (const prefix of ["", "/.", "/x/..", "/%2e", "/.\\."]) {
    const head = `POST ${prefix}/api/deployments/1/cancel HTTP/1.1\r\n${fields}`;
    const { replies } = await exchange(page.port, `${head}\r\n\r\n{}`, { replyCount: 1 });
    assert.equal(replies[0]?.status, 401, head);
  }
  await assertRunning();
});

test("a name that was rebound to this address reads nothing with a visitor's cookie", async () => {
  const ann = await signIn(page, service);
  for (const host of ["evil.example", `evil.example:${page.port}`, "localhost"])
    for (const path of ["/", "/deployments/1", "/api/projects", "/assets/x/page.css"]) {
      const { status, text } = await ann.get(path, { host });
      assert.equal(status, 421, `${host} ${path}`);
      assert.doesNotMatch(text, /default/);
    }
});

test("no path leads out of the assets or to another file", async () => {
  for (const path of ["x/../../settings.ts", "x/%2e%2e%2fpage.ts", "x/..%5cpage.ts", "../page.ts", "x/"])
    assert.doesNotMatch((await nobody.get(`/assets/${path}`)).text, /import|"name"/, path);
});

test("every answer forbids what the page does not use", async () => {
  const ann = await signIn(page, service);
  for (const path of ["/", "/nothing", "/api/projects", "/sign-in?link=x", "/assets/x/page.js"]) {
    const { headers } = await ann.get(path);
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /, path);
    assert.doesNotMatch(policy, /unsafe|\*|data:|https?:/, path);
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["access-control-allow-origin"], undefined);
  }
});

// The last one: it cancels.
test("what an operator starts is shown at once, and the audit log names them", async () => {
  const ann = await signIn(page, service);
  const cancelled = await ann.send("/deployments/1/cancel", {});
  assert.deepEqual([cancelled.status, cancelled.headers.location], [303, "/deployments/1"]);
  await untilDeployment(service.statePath, 1, ({ state }) => state === "cancelled");
  assert.match((await ann.get("/deployments/1")).text, /was cancelled/);
  const paused = await ann.send("/projects/default/pause", { reason: "lunch" });
  assert.equal(paused.headers.location, "/projects/default");
  assert.match((await ann.get("/projects/default")).text, /paused .*by Ann \(session \d+\): lunch/s);
  assert.equal((await ann.send("/projects/default/resume", {})).status, 303);
  const { entries } = await callRun(service.statePath, "audit", { limit: 4 });
  assert.deepEqual(
    entries.map(({ action, visitor }) => `${visitor.replace(/\d+/, "N")} ${action}`),
    ["resume", "pause", "cancel", "signIn"].map((action) => `Ann (session N) ${action}`),
  );
});
