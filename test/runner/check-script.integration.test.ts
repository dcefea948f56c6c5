import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { isFinished } from "../../src/deployments/deployment.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { brokenScripts } from "./script-set-ups.ts";
import { type BrokenSetUp, brokenPlaces, type Place } from "./set-ups.ts";

const brokenSetUps = [...brokenPlaces, ...brokenScripts];

/** The first sentence of each message, without its paths: it distinguishes the faults. */
const said = new Map<string, string>();
const asRoot = { skip: process.getuid?.() === 0 ? false : "it takes root to give files to another user" };

for (const setUp of brokenSetUps) {
  const runs = setUp.isUnprivileged ? needs("otherUser") : asRoot;
  test(`${setUp.name}: reported at start and at the run, and fixed by the advice`, runs, async (t) => {
    const { place, service } = await startBroken(t, setUp);
    const reported = await service.log.waitFor(({ event }) => event === "script.unusable");
    assert.equal(reported.code, setUp.code);
    assert.match(reported.msg ?? "", /^No push can be deployed: /);

    const push = githubPush();
    assert.equal((await deliver(service.url, push)).status, 202);
    const ending = await service.log.waitForEnding(1);
    const { problem, state } = (await untilDeployment(service.statePath, 1, isFailed)) ?? {};
    assert.deepEqual([state, problem?.code, ending.code], ["failed", setUp.code, setUp.code]);
    assert.equal(ending.msg, `Deployment 1 failed: ${problem?.detail}`);
    assert.equal(reported.msg, `No push can be deployed: ${problem?.detail}`);
    said.set(setUp.name, problem?.detail.replaceAll(/\S*\/\S*|\d+/g, "…") ?? "");

    const cure = setUp.cure.exec(problem?.detail ?? "");
    assert.ok(cure, `the message says what to do: ${problem?.detail}`);
    setUp.repair(place, cure);
    assert.equal((await deliver(service.url, push)).status, 202);
    const repaired = await untilDeployment(
      service.statePath,
      1,
      ({ state }) => state !== "failed" && isFinished(state),
    );
    assert.equal(repaired.state, "succeeded");
  });
}

test("different faults have different messages", asRoot, () => {
  const seen = brokenSetUps.filter(({ name }) => said.has(name));
  const codes = new Set(seen.map(({ code }) => code));
  assert.ok(codes.size >= 8);
  const messages = new Set(said.values());
  assert.ok(messages.size >= codes.size, `${messages.size} messages for ${codes.size} codes`);
});

test("nothing is reported at start if the script can run", async (t) => {
  const service = await startService(t);
  assert.ok(!service.log.lines.some(({ event }) => event === "script.unusable"));
});

test("a script that breaks after the start is reported at the run", async (t) => {
  const service = await startService(t);
  chmodSync(join(service.repoPath, "deploy.sh"), 0o644);
  await deliver(service.url, githubPush());
  assert.equal((await service.log.waitForEnding(1)).code, "script_not_executable");
  assert.equal(readDeployments(service.statePath)[0]?.problem?.code, "script_not_executable");
});

test("an interpreter whose path is not ASCII is found", async (t) => {
  const shell = join(temporaryDirectory(t), "büro-sh");
  symlinkSync("/bin/sh", shell);
  const service = await startService(t, { script: `#!${shell}\nexit 0\n` });
  await deliver(service.url, githubPush());
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
});

async function startBroken(
  t: TestContext,
  setUp: BrokenSetUp,
): Promise<{ readonly place: Place; readonly service: RunningService }> {
  const root = temporaryDirectory(t);
  const place = {
    repoPath: join(root, "repository"),
    scriptPath: join(root, "repository/deploy.sh"),
    temporaryPath: join(root, "temporary"),
    besidePath: join(root, "beside"),
  };
  for (const path of [place.temporaryPath, place.besidePath]) mkdirSync(path);
  for (const path of [root, place.temporaryPath, place.besidePath]) chmodSync(path, 0o777);
  setUp.make(place);
  const service = await startService(t, {
    statePath: join(root, "state"),
    repoPath: place.besidePath,
    env: { REPO_PATH: place.repoPath, TMPDIR: place.temporaryPath, HOME: place.besidePath },
    wrapper: setUp.isUnprivileged ? becomeNobody : [],
  });
  return { place, service };
}

function isFailed({ state }: { readonly state: string }): boolean {
  return state === "failed";
}
