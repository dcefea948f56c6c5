import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { makePlace, probe, setSettings } from "../harness/doctor.ts";
import { startTarget } from "../harness/listen.ts";

test("commit-status: a token with the rights passes", async (t) => {
  const { place } = await makeHostedPlace(t, 404);
  assert.equal((await probe(place, "commit-status")).outcome, "ok");
});

test("commit-status: a token that may only read is a warning, which does not show it", async (t) => {
  const { place } = await makeHostedPlace(t, 403);
  const [fault] = (await probe(place, "commit-status")).faults;
  assert.equal(fault?.severity, "warning");
  assert.doesNotMatch(JSON.stringify(fault), /a-token-of-gitea/);
});

test("commit-status: a file that other users can read is a warning, and is not used", async (t) => {
  const { place, path, requests } = await makeHostedPlace(t, 404);
  chmodSync(path, 0o644);
  const [fault] = (await probe(place, "commit-status")).faults;
  assert.equal(fault?.severity, "warning");
  assert.equal(requests.length, 0);
});

test("commit-status: skipped without COMMIT_STATUS_URL", async (t) => {
  assert.equal((await probe(makePlace(t), "commit-status")).outcome, "skipped");
});

async function makeHostedPlace(t: TestContext, postStatus: number) {
  const { url, requests } = await startTarget(t, (response, { method }) => {
    response.writeHead(method === "GET" ? 200 : postStatus).end("{}");
  });
  const place = makePlace(t);
  const path = join(place.root, "token");
  writeFileSync(path, "a-token-of-gitea\n", { mode: 0o600 });
  setSettings(place, { COMMIT_STATUS_URL: `gitea+${url}/octo/app`, COMMIT_STATUS_TOKEN_FILE: path });
  return { place, path, requests };
}
