import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { GuardOrder } from "../../src/deployments/deployment.ts";
import { giveGuardOrder, removeGuardOrder } from "../../src/projects/project.ts";
import { readDeploymentReport } from "../../src/rollout/report.ts";
import {
  type Answer,
  assertNoneFailed,
  fastMixture,
  type LoadResult,
  startLoad,
  underLoad,
} from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  type Behaviour,
  countingCaddyfile,
  type Ending,
  eventsIn,
  makeProject,
  outputOf,
  readLive,
  requestsIn,
  type TestProject,
  untilPrinted,
} from "../lab/project.ts";

/** About 100 requests a second. */
const pauseMs = 150;

/** 200 take half an hour. */
const rollouts = Number(process.env.HOTPUSH_E2E_MANY ?? 6);
const healthy: readonly Behaviour[] = [
  "graceful",
  "dies-on-sigterm",
  "ignores-sigterm",
  "slow-start",
  "lingers",
];
const faulty: readonly Behaviour[] = ["sick", "crashes"];

onEngine("the requests of a roll-out, and the guard of a new version", (env) => {
  let project: TestProject;
  let old: string;

  before(async () => {
    project = await makeProject({ ...env, GUARD: "6s" });
    // Another service is behind the proxy too: it must not matter.
    const api = "\treverse_proxy /api {file./run/live/api}:8080\n";
    await writeFile(
      join(project.directory, "Caddyfile"),
      countingCaddyfile.replace(":80 {\n", `:80 {\n${api}`),
    );
    await project.write("first", "graceful");
    await outputOf(project.rollOut({ args: ["app", "caddy"] }));
    old = await readLive(project);
  });
  after(() => project?.remove());

  /** Rolls out a version that is healthy, but answers badly. */
  async function rollOut(
    faults: object,
    GUARD: string,
    CHECK_URL = `${project.origin}/health`,
  ): Promise<Ending & { readonly load: LoadResult }> {
    const path = join(project.directory, "app", "behaviour.json");
    await writeFile(
      path,
      JSON.stringify({ version: JSON.stringify(faults), behaviour: "graceful", ...faults }),
    );
    // One in twenty requests that is slow anyway would hide a version that is slow.
    const load = startLoad(project.origin, pauseMs, undefined, fastMixture);
    // The health check does not see these errors, and the check through the proxy usually asks for the same.
    const ending = await project.rollOut({ args: ["--json", "app"], env: { CHECK_URL, GUARD } });
    return { ...ending, load: await load.stop() };
  }

  test("known numbers of requests of each kind are counted exactly, and reported for the receipt", async () => {
    await project.write("second", "slow-start");
    const rollout = project.spawnRollout({ args: ["--json", "app"], env: { DEPLOY_ID: "8", GUARD: "0" } });
    const output = await outputOf(untilPrinted(rollout, /"step":"start"/, () => sendEachKind(project)));
    // The check of the app through the proxy is six good answers more, of the new version.
    assert.deepEqual(requestsIn(output), [
      {
        host: "127.0.0.1",
        requests: 20 + 5 + 4 + 3 + 6 + 2 + 7 + 1 + 2 + 6,
        failed: 4 + 2,
        brokeOff: 3 + 1 + 2,
        left: 6,
        before: { answers: 20 + 5 + 7, serverErrors: 5 },
        after: { answers: 6, serverErrors: 0 },
      },
    ]);
    const { requests, images } = readDeploymentReport(join(project.directory, "state"), 8);
    assert.deepEqual(requests, requestsIn(output));
    assert.match(images?.find(({ service }) => service === "app")?.id ?? "", /^sha256:[0-9a-f]{64}$/);
    old = await readLive(project);
  });

  test("a version that fails every request is gone before the guard would have ended", async (t) => {
    const { code, output, load } = await rollOut({ errs: { every: 1 } }, "60s");
    assert.equal(code, 1, output);
    assert.match(
      failureIn(output),
      /is worse than the one before: \d+ of \d+ requests went wrong \([5-9]\d(?:\.\d)? %\), before 0 of/,
    );
    const times = load.failures.map(({ atMs }) => atMs);
    const lastedMs = Math.max(...times) - Math.min(...times);
    t.diagnostic(`${Math.round(lastedMs)} ms from its first error to its last`);
    assert.ok(lastedMs < 30_000);
    assert.equal(errorsIn(output), load.failures.length);
    assert.equal(await readLive(project), old);
  });

  test("a version that answers a second later than the one before goes back, without an error", async () => {
    const { code, output, load } = await rollOut({ slowMs: 1_000 }, "12s");
    assert.equal(code, 1, output);
    assert.match(failureIn(output), /19 of 20 answers came within .+ before within \d+ ms/);
    assertNoneFailed([load]);
    assert.equal(await readLive(project), old);
  });

  test("a version whose requests hang goes back: without a check before the guard, with one at its end", async () => {
    const unchecked = await rollOut({ slowMs: 15_000 }, "12s", "");
    assert.equal(unchecked.code, 1, unchecked.output);
    assert.match(failureIn(unchecked.output), /\(last: no answer; of the old version: status 200\)/);
    const checked = await rollOut({ slowMs: 15_000 }, "11s");
    assert.equal(checked.code, 1, checked.output);
    assert.match(
      failureIn(checked.output),
      /it gave \d of about \d+ expected answers, and left \d+ requests without one/,
    );
    assertNoneFailed([unchecked.load, checked.load]);
    assert.equal(await readLive(project), old);
  });

  test("a log that Caddy does not write any more is not taken for silence", async () => {
    await rm(join(await project.livePath(), ".requests.log"));
    const { output } = await rollOut({ errs: { every: 3 } }, "3s", "");
    assert.match(output, /"step":"guard".+Caddy answered a request that its log does not show/);
    assert.equal(
      eventsIn(output).find(({ event }) => event === "requests"),
      undefined,
    );
    await project.docker("restart", (await project.containerNames("caddy"))[0] ?? "");
    old = await readLive(project);
  });

  for (const [what, order, code, end] of [
    [
      "a roll back during the guard brings the old version back at once",
      "back",
      1,
      /A roll back was requested/,
    ],
    ["a newer deployment ends the guard, and the new version stays", "end", 0, /"detail":"ended early: /],
  ] as const)
    test(what, async () => {
      const ending = await orderDuringGuard(order);
      assert.equal(ending.code, code, ending.output);
      assert.match(ending.output, end);
      const now = await readLive(project);
      assert.equal(now === old, order === "back");
      old = now;
    });

  test("a roll-out that is cancelled during the guard brings the old version back", async () => {
    await project.write("cancelled", "graceful");
    const rollout = project.spawnRollout({ args: ["--json", "app"], env: { GUARD: "60s" } });
    const { code, output } = await untilPrinted(rollout, /"event":"guarding"/, async () => {
      rollout.kill("SIGTERM");
    });
    assert.notEqual(code, 0, output);
    assert.equal(failureIn(output), "The roll-out was asked to stop.");
    assert.equal(await readLive(project), old);
  });

  /** Rolls out a good version as deployment 7, and gives an order as the service does. */
  async function orderDuringGuard(order: GuardOrder): Promise<Ending> {
    const statePath = join(project.directory, "state");
    await project.write(`ordered-${order}`, "graceful");
    const ordersPath = join(project.directory, "orders");
    const env = { DEPLOY_ID: "7", HOTPUSH_ORDERS: ordersPath, GUARD: "60s" };
    const rollout = project.spawnRollout({ args: ["--json", "app"], env });
    const ending = await untilPrinted(rollout, /"event":"guarding"/, async () => {
      assert.ok(readDeploymentReport(statePath, 7).isGuarding);
      giveGuardOrder(ordersPath, 7, order);
    });
    removeGuardOrder(ordersPath, 7);
    return ending;
  }

  test(`${rollouts} roll-outs of different apps, one in ten faulty, fail no request`, async (t) => {
    const proofs: Proof[] = [];
    const { answers, versions } = await underLoad(project.origin, async () => {
      for (let number = 1; number <= rollouts; number += 1) {
        const isFaulty = number % 10 === 5;
        const behaviour = kindOf(isFaulty ? faulty : healthy, number);
        const options = { args: ["--json", "app"], env: { HEALTHY_TIMEOUT: "8s", GUARD: "0" } };
        await project.write(`version-${number}`, behaviour);
        const output = await outputOf(project.rollOut(options), isFaulty ? 1 : 0);
        const sites = requestsIn(output);
        assert.deepEqual(
          sites.map(({ failed, brokeOff }) => ({ failed, brokeOff })),
          [{ failed: 0, brokeOff: 0 }],
          `roll-out ${number}: ${behaviour}`,
        );
        proofs.push(proofIn(output));
      }
    });
    for (const proof of proofs) assertMatches(proof, answers);
    const counted = proofs.reduce((sum, { requests }) => sum + requests, 0);
    t.diagnostic(`${answers.length} requests, ${counted} of them counted in proofs, none failed`);
    assert.ok(!versions.includes("version-5"));
  });
});

function failureIn(output: string): string {
  return eventsIn(output).find((one) => one.event === "failed")?.detail ?? "";
}

/** The answers of the app with 5xx, as the roll-out counted them. */
function errorsIn(output: string): number {
  return requestsIn(output).reduce(
    (sum, { before, after }) => sum + before.serverErrors + after.serverErrors,
    0,
  );
}

/** Sends requests, each with an ending of its own, and checks what the client sees. */
async function sendEachKind(project: TestProject): Promise<void> {
  const { origin } = project;
  const live = join(await project.livePath(), "app");
  const send = async (count: number, path: string, seen: Seen, leave?: number | "at its first bytes") => {
    const answers = Array.from({ length: count }, () => ask(origin + path, leave));
    assert.deepEqual(
      await Promise.all(answers),
      Array.from({ length: count }, () => seen),
      path,
    );
  };
  await Promise.all([
    send(20, "/", 200),
    send(5, "/fail", 500),
    send(4, "/reset", 502),
    send(3, "/break", "broken off"),
    send(6, "/?ms=20000", "broken off", 2_000),
    send(2, "/stream?lines=99", "broken off", "at its first bytes"),
  ]);
  const [name = ""] = await project.containerNames("app");
  await writeFile(live, "nobody.invalid");
  // The first reaches the app by its name; the others would be deliveries, which are not sent on.
  await Promise.all([send(7, "/", 200), send(1, "/break", "broken off"), send(2, "/webhook", 502)]);
  await writeFile(live, name);
}

/** The status of a whole answer, or none was given. */
type Seen = number | "broken off";

function ask(url: string, leave: number | "at its first bytes" | undefined): Promise<Seen> {
  return new Promise((resolve) => {
    const end = () => resolve("broken off");
    const sent = get(url, { agent: false }, (response) => {
      response.on("end", () => resolve(response.complete ? (response.statusCode ?? 0) : "broken off"));
      response.on("error", end).resume();
      if (leave === "at its first bytes") response.once("data", () => sent.destroy());
    });
    sent.on("error", end);
    if (typeof leave === "number") setTimeout(() => sent.destroy(), leave);
  });
}

type Proof = ReturnType<typeof proofIn>;

const requestsPerCheck = 6;

/** What a roll-out says of its requests, and when it counted; milliseconds since 1970. */
function proofIn(output: string) {
  const all = eventsIn(output);
  const timeOf = (found: { readonly at: string } | undefined) => Date.parse(found?.at ?? "");
  const steps = all.filter((one) => one.event === "step");
  return {
    requests: requestsIn(output)[0]?.requests ?? 0,
    /** Hotpush sends some through the proxy itself. */
    ownRequests: requestsPerCheck * steps.filter(({ step }) => step === "check").length,
    /** It began between these two. */
    began: [
      timeOf(steps.find(({ step }) => step === "read")),
      timeOf(all.find(({ event }) => event === "started")),
    ] as const,
    ended: [timeOf(steps.at(-1)), timeOf(all.find(({ event }) => event === "requests"))] as const,
  };
}

/** The clients count the same, but for the requests in flight when the roll-out began to count and when it ended. */
function assertMatches({ requests, ownRequests, began, ended }: Proof, answers: readonly Answer[]): void {
  const times = answers.map(({ atMs, latencyMs }) => {
    const sentMs = performance.timeOrigin + atMs;
    return { sentMs, answeredMs: sentMs + latencyMs };
  });
  const least = times.filter(({ sentMs, answeredMs }) => sentMs > began[1] && answeredMs < ended[0]).length;
  const most = times.filter(({ sentMs, answeredMs }) => answeredMs >= began[0] && sentMs <= ended[1]).length;
  const counted = requests - ownRequests;
  assert.ok(least <= counted && counted <= most, `${counted} counted, ${least} to ${most} sent`);
}

function kindOf(kinds: readonly Behaviour[], number: number): Behaviour {
  return kinds[number % kinds.length] ?? "graceful";
}
