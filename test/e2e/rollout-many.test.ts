import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Answer } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import { type Behaviour, countingCaddyfile, eventsIn, outputOf, requestsIn } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

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

onEngine("many roll-outs in a row", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env, (made) =>
      writeFile(join(made.directory, "Caddyfile"), countingCaddyfile),
    );
    assert.equal((await project.deploy("version-0", "graceful")).code, 0);
  });
  after(() => project?.remove());

  test(`${rollouts} roll-outs of all kinds of apps, one in ten sick, fail no request`, async (t) => {
    const proofs: Proof[] = [];
    const { answers, versions } = await project.underLoad(async () => {
      for (let number = 1; number <= rollouts; number += 1) {
        const isFaulty = number % 10 === 5;
        const behaviour = kindOf(isFaulty ? faulty : healthy, number);
        const options = { args: ["--json"], env: { HEALTHY_TIMEOUT: "8s" } };
        const output = await outputOf(
          project.deploy(`version-${number}`, behaviour, options),
          isFaulty ? 1 : 0,
        );
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
