import assert from "node:assert/strict";
import { test } from "node:test";
import { settleServed } from "../../src/setup/served-questions.ts";
import { noChoices, publicProjects } from "./public-projects.ts";

/** Answers by the question's id; Enter for others. Gives the ids, and where the ports ended. */
async function settled(name: string, answers: Readonly<Record<string, string>> = {}) {
  const { services } = publicProjects.find((one) => one.name === name) ?? assert.fail(name);
  const asked: string[] = [];
  const { plan } = await settleServed(services, noChoices, async ({ id, proposal, read }) => {
    asked.push(id);
    const options = read(answers[id] ?? proposal);
    return typeof options === "string" ? assert.fail(options) : options;
  });
  const served = plan.upstreams.map(
    ({ endpoint, place }) => `${endpoint.service} ${place.kind === "name" ? place.name : place.port}`,
  );
  return { asked, served, plan };
}

test("Enter takes the proposals, and each thing is asked once", async () => {
  const { asked, served } = await settled("outline");
  assert.deepEqual(asked, ["main", "oidc:8080", "writers outline"]);
  assert.deepEqual(served, ["outline app.example.org", "oidc oidc.app.example.org"]);
});

test("the answer about the main service decides what is asked next", async () => {
  const { asked, served } = await settled("outline", { main: "oidc", "outline:3000": ":8001" });
  assert.deepEqual(asked, ["main", "outline:3000", "writers outline"]);
  assert.deepEqual(served, ["oidc app.example.org", "outline 8001"]);
});

test("the main address can be any port of any service, or none", async () => {
  assert.deepEqual((await settled("gitea", { main: "db:9000" })).served, [
    "db app.example.org",
    "server server.app.example.org",
  ]);
  const { served, plan } = await settled("gitea", { main: "none" });
  assert.deepEqual([served, plan.left.length], [[], 2]);
});

test("the answer about writers becomes a label", async () => {
  for (const [answer, label] of [
    ["yes", "live"],
    ["n", "recreate"],
    ["no", "recreate"],
  ] as const) {
    const { plan } = await settled("ghost", { "writers ghost": answer });
    assert.equal(plan.changes.ghost?.label, label);
  }
});

test("an answer that cannot be used is explained", async () => {
  const { services } = publicProjects.find(({ name }) => name === "outline") ?? assert.fail();
  await settleServed(services, noChoices, async ({ id, proposal, read }) => {
    if (id === "main") assert.match(String(read("nobody")), /not a service of your compose file/);
    if (id === "oidc:8080") {
      assert.match(String(read("https://")), /not a host name, :port or none/);
      assert.match(String(read(":443")), /Caddy has port 443 already/);
    }
    const options = read(proposal);
    return typeof options === "string" ? assert.fail(options) : options;
  });
});
