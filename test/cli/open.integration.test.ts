import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { callAsPage, openSession } from "../harness/page.ts";

const pageUrl = "https://hotpush.example.com";

test("open prints a link for the person at the shell, who is an operator", async (t) => {
  const service = await start(t);
  const { stdout } = await hotpush({ ...service, env: { USER: "ada" } }, "open");
  const [first, second = ""] = stdout.split("\n");
  assert.equal(first, "ada can sign in as operator within 2 min, once:");
  assert.match(second, /^ {2}https:\/\/hotpush\.example\.com\/sign-in\?link=hpl_[\w-]{43}$/);
  const sudo = await hotpush({ ...service, env: { USER: "root", SUDO_USER: "ada" } }, "open");
  assert.match(sudo.stdout, /^ada can sign in as operator /);
});

test("open --list shows who is signed in and what they did, and --end ends a session", async (t) => {
  const service = await start(t);
  const { link } = await hotpushJson<{ link: string }>(service, "open", "--name", "Ann\u001b[31m");
  const credential = await openSession(service, link);
  const statusOf = async (call: string) => (await callAsPage(service, call, { credential })).status;
  assert.equal(await statusOf("GET /projects"), 200);
  const lines = (await hotpush(service, "open", "--list")).stdout.split("\n");
  assert.match(lines[2] ?? "", /^1 +session +Ann +viewer +\d{4}-.+ 192\.0\.2\.7$/);
  assert.match(lines.at(-2) ?? "", /Ann \(session 1\) +signIn .+done$/);
  const { stdout } = await hotpush(service, "open", "--end", "1");
  assert.equal(stdout, "The session 1 of Ann has ended.\n");
  assert.equal(await statusOf("GET /projects"), 401);
  assert.equal((await hotpush(service, "open", "--end", "1")).code, 1);
});

test("open --token makes a token that looks, or acts", async (t) => {
  const service = await start(t);
  for (const [option, status] of [
    [[], 403],
    [["--deploy"], 200],
  ] as const) {
    const credential = (await hotpush(service, "open", "--token", "ci", ...option)).stdout.trim();
    assert.equal((await callAsPage(service, "POST /projects/_/pause", { credential })).status, status);
  }
});

function start(t: TestContext) {
  return startAnswering(t, { env: { PAGE_URL: pageUrl } });
}
