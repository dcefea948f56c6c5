import assert from "node:assert/strict";
import { test } from "node:test";
import { makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { checks, runChecks } from "../../src/doctor/examine.ts";
import type { SetupServices } from "../../src/init/compose-services.ts";
import { endpointsOf } from "../../src/init/upstreams/endpoints.ts";
import { notesOf } from "../../src/init/upstreams/notes.ts";
import { planUpstreams, type UpstreamPlan } from "../../src/init/upstreams/plan.ts";
import { questionsOf } from "../../src/init/upstreams/questions.ts";
import { servicesAfter } from "../../src/init/upstreams/service-changes.ts";
import { namesRunToTheirEnd } from "../../src/rollout/compose/project.ts";
import { replacementOf } from "../../src/rollout/compose/replacement.ts";
import { corpus, corpusOptions } from "./corpus.ts";

for (const { name, services, answer } of corpus) {
  const plan = planUpstreams(services, corpusOptions);

  test(`${name}: each published port ends as a person would decide`, () => {
    assert.equal(plan.ownProxy, answer.proxy ?? null);
    assert.deepEqual(Object.entries(servedBy(plan)), Object.entries(answer.at));
    const left = leftBy(plan);
    assert.deepEqual(Object.keys(left).sort(), Object.keys(answer.stays ?? {}).sort());
    for (const [port, words] of Object.entries(answer.stays ?? {}))
      assert.ok(left[port]?.includes(words), left[port]);
    assert.equal(plan.upstreams[0]?.isMain ?? true, true);
  });

  test(`${name}: init asks only what a person must decide`, () => {
    const asked = questionsOf(services, corpusOptions, plan).map(({ id }) => id);
    assert.deepEqual(asked, answer.asks ?? []);
  });

  test(`${name}: a roll-out and doctor see the project as the plan says`, async () => {
    const after = servicesAfter(services, plan.services);
    const labels = Object.entries(plan.services).flatMap(([service, { label }]) =>
      label ? [[service, label]] : [],
    );
    assert.deepEqual(Object.fromEntries(labels), answer.labels ?? {});
    assert.deepEqual(replacedBy(after, "recreate"), [...(answer.recreated ?? [])].sort());
    assert.deepEqual(replacedBy(after, "run-once"), answer.once ?? []);
    assert.deepEqual((await faultsOf(after)).sort(), [...(answer.doctor ?? [])].sort());
  });

  test(`${name}: no published port disappears silently`, () => {
    const said = notesOf(services, corpusOptions, plan).join("\n");
    for (const { service, published } of plan.ownProxy === null ? endpointsOf(services) : []) {
      assert.ok(said.includes(service), `nothing about ${service}`);
      for (const { port } of published)
        assert.ok(said.includes(port) || / to \d+ of/.test(said), `${service} ${port}`);
    }
    if (plan.ownProxy !== null) assert.ok(said.includes(plan.ownProxy));
  });
}

test("the corpus has at least forty shapes", () => {
  assert.ok(corpus.length >= 40, `${corpus.length}`);
});

function servedBy({ upstreams }: UpstreamPlan): Readonly<Record<string, string>> {
  return Object.fromEntries(
    upstreams.map(({ service, port, place }) => [
      `${service}:${port}`,
      place.kind === "name" ? place.name : `:${place.port}`,
    ]),
  );
}

function leftBy({ left }: UpstreamPlan): Readonly<Record<string, string>> {
  return Object.fromEntries(
    left.map(({ endpoint: { service, port, protocol }, reason }) => [
      `${service}:${port}${protocol === "tcp" ? "" : `/${protocol}`}`,
      reason,
    ]),
  );
}

function replacedBy(services: SetupServices, how: string): readonly string[] {
  const awaited = namesRunToTheirEnd(services);
  return Object.entries(services)
    .filter(([name, service]) => replacementOf(service, awaited.has(name)).how === how)
    .map(([name]) => name)
    .sort();
}

/** The checks of the compose file that need neither the engine nor other files. */
async function faultsOf(services: SetupServices): Promise<string[]> {
  const settings = readSettings({ DOCKER_HOST: "unix:///nonexistent" }, "/nonexistent");
  const model = { name: "shop", services };
  const compose = async () => ({ kind: "model", version: "2.40.0", model }) as const;
  const context = { ...makeDoctorContext(settings, null), compose };
  const rules = checks.filter(({ id }) => id === "lint-side-by-side" || id === "lint-volumes");
  const reports = await runChecks(context, rules);
  return reports.flatMap(({ check, result }) =>
    result.outcome === "faulty" ? result.faults.map(({ text }) => `${check.id} ${text.split(" ")[0]}`) : [],
  );
}
