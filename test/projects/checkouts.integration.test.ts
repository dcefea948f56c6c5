import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { githubPush } from "../harness/delivery.ts";
import { makeMachine, type RunningRole } from "../harness/machine.ts";
import { makeRepository } from "../harness/repository.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** A checkout with a commit, whose script runs until there is a file `go`. */
function makeCheckout(t: TestContext) {
  const repository = makeRepository(t);
  writeScript(
    join(repository.directory, "deploy.sh"),
    "#!/bin/sh\necho $DEPLOY_ID >>../runs\nuntil [ -e go ]; do sleep 0.05; done\n",
  );
  const commit = repository.commit();
  const go = () => writeFileSync(join(repository.directory, "go"), "");
  return { path: repository.directory, commit, go };
}

async function push(service: RunningRole, project: string, after?: string): Promise<number> {
  const delivery = githubPush(after === undefined ? {} : { after });
  return (await fetch(service.urlOf(project), { method: "POST", ...delivery })).status;
}

test("a script keeps its checkout while REPO_PATH changes, also through a crash", async (t) => {
  const machine = makeMachine(t);
  const before = makeCheckout(t);
  const after = makeCheckout(t);
  machine.addProject("shop", before.path);
  const service = await machine.start("all");
  assert.equal(await push(service, "shop", before.commit), 202);
  await service.log.waitFor(({ event }) => event === "deployment.started");
  machine.addProject("shop", after.path);
  const isRead = () => service.log.lines.filter(({ event }) => event === "project.read").length === 2;
  await until("the new settings are read", isRead);
  await service.end("SIGKILL");
  const next = await machine.start("all");
  await next.log.waitFor(({ event }) => event === "deployment.adopted");
  before.go();
  assert.equal((await next.log.waitForEnding(1)).event, "deployment.succeeded");
});
