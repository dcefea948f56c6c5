import assert from "node:assert/strict";
import { test } from "node:test";
import { settleUpstreams } from "../../../src/init/upstreams/questions.ts";
import { corpus, corpusOptions } from "../corpus.ts";

/** Answers by the question's id; Enter for others. Gives the ids, and where the ports ended. */
async function settled(name: string, answers: Readonly<Record<string, string>> = {}) {
  const { services } = corpus.find((one) => one.name === name) ?? assert.fail(name);
  const asked: string[] = [];
  const { plan } = await settleUpstreams(services, corpusOptions, async ({ id, fallback, read }) => {
    asked.push(id);
    const options = read(answers[id] || fallback);
    return typeof options === "string" ? assert.fail(options) : options;
  });
  const served = plan.upstreams.map(
    ({ service, place }) => `${service} ${place.kind === "name" ? place.name : place.port}`,
  );
  return { asked, served, plan };
}

test("Enter takes the defaults, and each thing is asked once", async () => {
  const { asked, served } = await settled("two-web-apps");
  assert.deepEqual(asked, ["main", "store:8000"]);
  assert.deepEqual(served, ["blog app.example.org", "store store.app.example.org"]);
});

test("the answer about the main service decides what is asked next", async () => {
  const { asked, served } = await settled("two-web-apps", { main: "store", "blog:8000": ":8001" });
  assert.deepEqual(asked, ["main", "blog:8000"]);
  assert.deepEqual(served, ["store app.example.org", "blog 8001"]);
});

test("a port in doubt stays, unless a person gives it an address", async () => {
  assert.deepEqual((await settled("game-built")).served, ["website app.example.org"]);
  const { served } = await settled("game-built", { "server:7171": "play.example.org" });
  assert.deepEqual(served, ["website app.example.org", "server play.example.org"]);
});

test("the answer about writers becomes a label", async () => {
  for (const [answer, label] of [
    ["yes", "live"],
    ["n", "recreate"],
    ["", "recreate"],
  ] as const) {
    const { plan } = await settled("ghost", { "writers ghost": answer });
    assert.equal(plan.services.ghost?.label, label);
  }
});

test("an answer that cannot be used is explained", async () => {
  const { services } = corpus.find(({ name }) => name === "monorepo") ?? assert.fail();
  await settleUpstreams(services, corpusOptions, async ({ id, fallback, read }) => {
    if (id === "admin:3002") {
      assert.match(String(read("https://")), /not a host name, :port or none/);
      assert.match(String(read(":443")), /Caddy has port 443 already/);
    }
    const options = read(fallback);
    return typeof options === "string" ? assert.fail(options) : options;
  });
});
