import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startAnswering } from "../../harness/hotpush.ts";
import {
  browse,
  callAsPage,
  cookieOf,
  makeSignInLink,
  signIn,
  startPage,
  tokenIn,
} from "../../harness/page.ts";

test("a link shows a button, which uses it up, and opens nothing a second time", async (t) => {
  const { service, page } = await start(t);
  const link = await makeSignInLink(service);
  const nobody = browse(page, null);
  // A chat program fetches what it shows.
  for (let preview = 0; preview < 3; preview += 1)
    assert.match((await nobody.get(`/sign-in?link=${link}`)).text, /<button[^>]*>Sign in<\/button>/);
  const { status, headers } = await nobody.send("/sign-in", { link }, { token: null });
  assert.deepEqual([status, headers.location], [303, "/"]);
  assert.match(
    headers["set-cookie"]?.[0] ?? "",
    /^hotpush=hps_[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=2592000$/,
  );
  const { text } = await browse(page, cookieOf(headers)).get("/");
  assert.match(text, /Ann<\/span><small>operator/);
  const again = await nobody.send("/sign-in", { link }, { token: null });
  assert.deepEqual([again.status, again.headers["set-cookie"]], [401, undefined]);
  assert.match(again.text, /This link opens nothing/);
});

test("a session that was planted in the browser is never the one signed in", async (t) => {
  const { service, page } = await start(t);
  const planted = `hotpush=hps_${"A".repeat(43)}`;
  const link = await makeSignInLink(service);
  const { headers } = await browse(page, planted).send("/sign-in", { link }, { token: null });
  assert.notEqual(cookieOf(headers), planted);
  assert.equal((await browse(page, planted).get("/")).status, 401);
  assert.equal((await browse(page, cookieOf(headers)).get("/")).status, 200);
});

test("signing in and out leads nowhere else, whatever is asked for", async (t) => {
  const { service, page } = await start(t);
  const link = await makeSignInLink(service);
  const fields = {
    link,
    next: "//evil.example",
    return: "https://evil.example",
    redirect: "/\\evil.example",
  };
  const { headers } = await browse(page, null).send("/sign-in?next=//evil.example", fields, { token: null });
  assert.equal(headers.location, "/");
  const ann = browse(page, cookieOf(headers));
  for (const path of ["//evil.example/", "//evil.example", "/%2f%2fevil.example", "///", "/\\evil.example"]) {
    const answer = await ann.get(path);
    assert.equal(answer.headers.location, undefined, path);
    assert.notEqual(answer.status, 500, path);
  }
  const out = await ann.send("/sign-out", { next: "//evil.example" });
  assert.deepEqual([out.status, out.headers.location], [303, "/"]);
  assert.match(out.headers["set-cookie"]?.[0] ?? "", /^hotpush=; .*Max-Age=0$/);
  assert.equal((await ann.get("/")).status, 401, "a copy of the cookie is worth nothing");
});

test("headers that name a person sign nobody in", async (t) => {
  const { page } = await start(t);
  const names = [
    "remote-user",
    "x-forwarded-user",
    "x-auth-request-email",
    "tailscale-user-login",
    "x-webauth-user",
  ];
  for (const name of names) {
    const { status, text } = await browse(page, null).get("/", { [name]: "ada@example.com" });
    assert.equal(status, 401, name);
    assert.match(text, /hotpush open/);
  }
});

test("no credential of another kind is taken for a session", async (t) => {
  const { service, page } = await start(t);
  const link = await makeSignInLink(service);
  for (const wrong of [
    link,
    page.token.replace("hpt_", "hps_"),
    "",
    "x".repeat(101),
    `hps_${"A".repeat(43)}`,
  ])
    assert.equal((await browse(page, `hotpush=${wrong}`).get("/")).status, 401, wrong);
  const { status } = await callAsPage(service, "GET /projects", { credential: link });
  assert.equal(status, 401);
});

test("a form of one session is worth nothing in another", async (t) => {
  const { service, page } = await start(t);
  const ann = await signIn(page, service);
  const ben = await signIn(page, service, { name: "Ben" });
  const token = tokenIn((await ann.get("/projects/default")).text);
  assert.ok(token);
  assert.equal((await ben.send("/projects/default/pause", {}, { token })).status, 403);
  assert.equal((await ann.send("/projects/default/pause", {}, { token })).status, 303);
});

async function start(t: TestContext) {
  const service = await startAnswering(t);
  return { service, page: await startPage(t, service) };
}
