import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { callRun } from "../../src/calls/client.ts";
import { openHttp, withShortPath } from "../../src/platform/http.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { callAsPage, makeSignInLink, makeToken, openSession } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const project = "POST /projects/default";
const service = await startService(test);

test("the record and the audit log name the token, whatever the page says", async (t) => {
  const service = await startService(t, { script: "#!/bin/sh\n" });
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  const reading = await makeToken(service, "viewer");
  const deploying = await makeToken(service, "operator");
  const lie = { requestedBy: "somebody else" };
  assert.equal((await ask(service, `${project}/rollback`, deploying, lie)).status, 422);
  await ask(service, `${project}/rollback`, deploying);
  await ask(service, `${project}/rollback`, reading);
  assert.deepEqual(
    (await auditOf(service)).map(({ visitor, action, address, status }) => [
      visitor,
      action,
      address,
      status,
    ]),
    [409, 422].map((status) => ["operator's token (token 2)", "rollback", "192.0.2.7", status]),
  );
});

test("thousands of wrong tokens and links lock nobody out", async () => {
  const token = await makeToken(service, "viewer");
  const guess = () => ask(service, "GET /projects", guessed("hpt_"));
  for (let round = 0; round < 40; round += 1) {
    const guesses = Array.from({ length: 50 }, (_, index) =>
      index % 2 === 0 ? guess().then(({ status }) => status) : openSession(service, guessed("hpl_")),
    );
    assert.deepEqual(new Set(await Promise.all(guesses)), new Set([401, null]));
  }
  assert.equal((await ask(service, "GET /projects", token)).status, 200);
  // A link that was made before would have come of age on a busy machine.
  assert.notEqual(await openSession(service, await makeSignInLink(service)), null);
});

test("when a token is revoked, a stream that it opened ends", async (t) => {
  const script = `#!/bin/sh\necho begin\nwhile [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done\n`;
  const service = await startService(t, { script });
  await deliver(service.url, githubPush());
  const token = await makeToken(service, "viewer");
  const headers = { authorization: `Bearer ${token}` };
  const stream = await withShortPath(join(service.statePath, "front.sock"), (socketPath) =>
    openHttp({ socketPath, path: "/deployments/1/events" }, { headers }),
  );
  let isOver = false;
  stream.on("close", () => {
    isOver = true;
  });
  stream.on("error", () => {}).resume();
  await callRun(service.statePath, "endVisitor", { id: 1 });
  assert.equal((await ask(service, "GET /projects", token)).status, 401);
  await until("the end of the stream", () => isOver, 10_000);
});

test("a flood of refused attempts pushes nothing out of the audit log", async () => {
  const operator = await makeToken(service, "operator");
  const viewer = await openSession(service, await makeSignInLink(service, { role: "viewer" }));
  assert.equal((await ask(service, `${project}/pause`, operator)).status, 200);
  const before = await auditOf(service);
  const reading = await makeToken(service, "viewer");
  const forbidden = Array.from({ length: 100 }, () => ask(service, `${project}/resume`, viewer));
  const signOuts = Array.from({ length: 100 }, () => ask(service, "POST /sign-out", reading));
  const links = Array.from({ length: 100 }, () => openSession(service, guessed("hpl_")));
  await Promise.all<unknown>([...forbidden, ...signOuts, ...links]);
  assert.deepEqual(await auditOf(service), before);
});

function ask(service: RunningService, call: string, credential: string | null, body = {}) {
  return callAsPage(service, call, { credential, body });
}

async function auditOf({ statePath }: RunningService) {
  return (await callRun(statePath, "audit", {})).entries;
}

/** One that Hotpush could have made. */
function guessed(prefix: "hpl_" | "hpt_"): string {
  return `${prefix}${randomBytes(32).toString("base64url")}`;
}
