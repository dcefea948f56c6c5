import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointsOf } from "../../src/init/upstreams/endpoints.ts";
import { notesOf } from "../../src/init/upstreams/notes.ts";
import { planUpstreams, type UpstreamPlan } from "../../src/init/upstreams/plan.ts";
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
