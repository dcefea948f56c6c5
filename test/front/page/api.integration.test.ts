import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { browse, makeSignInLink, startPage } from "../../harness/page.ts";
import { untilDeployment } from "../../harness/records.ts";
import { letGo, startService } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";

const script = `#!/bin/sh
echo "==> Pull"
printf 'one é\\ntwo'
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
echo " and a half"
echo "==> Build"
printf 'no line end'
`;

test("every answer is what the OpenAPI document says", async (t) => {
  const service = await startService(t, { script });
  const { ask } = await startPage(t, service);
  for (let count = 0; count < 3; count += 1) await deliver(service.url, githubPush());
  await ask("GET /api/openapi.json", { token: null });
  await ask("POST /api/projects/default/pause", { body: { reason: "a test" } });
  await ask("GET /api/projects");
  await ask("POST /api/projects/default/resume");
  await ask("GET /api/deployments/1");
  await ask("POST /api/deployments/3/cancel");
  letGo(service.repoPath);
  await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  await ask("GET /api/projects");
  assert.deepEqual(await idsOf("GET /api/deployments?project=default"), [3, 2, 1]);
  assert.deepEqual(await idsOf("GET /api/deployments?state=succeeded"), [1]);
  const { deployments, next } = (await ask("GET /api/deployments?limit=2")).json;
  assert.deepEqual([(deployments as readonly unknown[]).length, next], [2, 2]);
  assert.deepEqual(await idsOf(`GET /api/deployments?limit=2&before=${next}`), [1]);
  const { text, type } = await ask("GET /api/deployments/1/log");
  assert.equal(text, "==> Pull\none é\ntwo and a half\n==> Build\nno line end\n");
  assert.equal(type, "text/plain; charset=utf-8");
  for (const missing of ["GET /api/deployments/99", "GET /api/deployments?project=nothing", "GET /api/else"])
    assert.equal((await ask(missing)).status, 404, missing);
  assert.equal((await ask("POST /api/projects/default/rollback", { body: { version: "abc" } })).status, 409);

  async function idsOf(call: string): Promise<readonly number[]> {
    return ((await ask(call)).json.deployments as readonly { id: number }[]).map(({ id }) => id);
  }
});

test("while run is away the page says so, also to who signs in, and answers again when it is back", async (t) => {
  const service = await startService(t);
  const page = await startPage(t, service);
  const link = await makeSignInLink(service);
  const signIn = () => browse(page, null).send("/sign-in", { link }, { token: null });
  await service.end();
  const { status, json } = await page.ask("GET /api/projects");
  assert.equal(status, 503);
  assert.match(String(json.detail), /Pushes are still received/);
  const refused = await signIn();
  assert.equal(refused.status, 503);
  assert.match(refused.text, /Pushes are still received.*<button[^>]*>Sign in</s);
  await service.again();
  await until("the socket", async () => (await page.ask("GET /api/projects")).status === 200);
  assert.equal((await signIn()).status, 303, "the link was not used up");
});
