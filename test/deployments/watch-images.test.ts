import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createCatchUp } from "../../src/deployments/catch-up.ts";
import { recordRequest, takeBack } from "../../src/deployments/record.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import { imagesFor, type NewImages } from "../../src/deployments/watch-images.ts";
import { makeResolving } from "../harness/resolving.ts";
import { commitOf, countOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

const ref = "refs/heads/main";
const commit = commitOf("one");
const imageOf = (digit: string) => `registry.example/team/app:main@sha256:${digit.repeat(64)}`;
const [a, b, c] = [imageOf("a"), imageOf("b"), imageOf("c")];

/** A project whose commit `one` is live, and registries that have what the test says. */
function makeWatched(t: TestContext) {
  const store = temporaryStore(t);
  const logged: string[] = [];
  let reading: NewImages = { kind: "images", images: [] };
  let asked = 0;
  const { start, look, stop, report } = createCatchUp({
    store,
    refs: [ref],
    readRemoteHead: async () => ({ kind: "head", commit }),
    judgeHead: async () => "skipped",
    async readNewImages() {
      asked += 1;
      return reading;
    },
    request: (request) => store.transaction(() => recordRequest(store, request)),
    log: pino({ level: "warn" }, { write: (line: string) => void logged.push(line) }),
    intervalMs: 3_600_000,
    askEveryMs: 0,
    inTurn: (look) => look(),
  });
  t.after(stop);

  async function read(now: NewImages) {
    const [count, before] = [countOf(store, "deployments"), asked];
    reading = now;
    start(); // As after each interval.
    look(ref);
    await until("the registries were asked", () => asked > before);
    await new Promise((resolve) => setImmediate(resolve));
    const id = countOf(store, "deployments");
    return id === count ? null : findDeployment(store, id);
  }

  return {
    store,
    logged,
    report,
    read,
    /** @returns the deployment that is requested for these images, or null */
    find: (...images: readonly string[]) => read({ kind: "images", images }),
    run: (state: "succeeded" | "failed" | "cancelled") => run(store, state),
    request: (trigger: "manual" | "rollback") =>
      store.transaction(() => recordRequest(store, { trigger, ref, commit })),
    /** A push whose roll-out pins these images. */
    push(state: "succeeded" | "failed", ...images: readonly string[]) {
      const { id } = record(store, pushOf({ commit })).deployment;
      const sql = "UPDATE deployments SET images = ? WHERE id = ?";
      store.transaction(() => store.run(sql, JSON.stringify(images), id));
      run(store, state);
    },
  };
}

test("a new image is deployed with the commit that is live, and only once", async (t) => {
  const { find, run: end, push } = makeWatched(t);
  assert.equal(await find(a), null);
  push("succeeded");
  const found = await find(a);
  assert.deepEqual([found?.trigger, found?.ref, found?.commit], ["image", ref, commit]);
  end("succeeded");
  // A script that does not pull has left the old one.
  assert.equal(await find(a), null);
});

for (const [what, undo] of [
  ["that failed", ({ run: end }) => void end("failed")],
  ["that was cancelled", ({ run: end }) => void end("cancelled")],
  [
    "that the guard took back",
    ({ run: end, store }) => {
      const { id } = end("failed");
      store.transaction(() => takeBack(store, id));
    },
  ],
  [
    "that was rolled back from",
    ({ run: end, request }) => {
      end("succeeded");
      request("rollback");
      end("succeeded");
    },
  ],
] satisfies [string, (watched: ReturnType<typeof makeWatched>) => void][])
  test(`an image ${what} stays back until there is a newer one`, async (t) => {
    const watched = makeWatched(t);
    watched.push("succeeded", a);
    assert.ok(await watched.find(b));
    undo(watched);
    assert.equal(await watched.find(b), null);
    const newer = await watched.find(b, c);
    assert.ok(newer);
    const [wanted, ...back] = imagesFor(watched.store, newer).split(" ");
    assert.deepEqual([wanted, back.includes(b), back.includes(c)], ["newest", true, false]);
  });

test("a tag that is put back to an older good image is followed", async (t) => {
  const { find, push } = makeWatched(t);
  push("succeeded", a);
  push("succeeded", b);
  assert.equal((await find(a))?.trigger, "image");
});

test("a push rolls out what failed before, but nothing that was taken back; a person everything", async (t) => {
  const { store, push, request, run: end } = makeWatched(t);
  push("succeeded", a);
  push("failed", b);
  push("succeeded", c);
  request("rollback");
  end("succeeded");
  const { id } = record(store, pushOf()).deployment;
  const next = findDeployment(store, id) ?? assert.fail();
  assert.equal(imagesFor(store, next), `newest ${c}`);
  assert.equal(imagesFor(store, { ...next, trigger: "catch-up" }), `newest ${c} ${b}`);
  assert.equal(imagesFor(store, { ...next, trigger: "manual" }), "newest");
});

test("an image that was rolled back from stays back, whatever else was deployed before", async (t) => {
  const { store, find, push, request, run: end } = makeWatched(t);
  push("succeeded", a);
  assert.ok(await find(b));
  end("succeeded");
  // Of what runs already, nothing is pinned again.
  store.transaction(() => recordRequest(store, { trigger: "catch-up", ref, commit, images: [] }));
  end("succeeded");
  request("rollback");
  end("succeeded");
  assert.equal(await find(b), null);
});

test("a registry that does not answer is logged once and reported, until it answers", async (t) => {
  const { read, find, report, logged, push } = makeWatched(t);
  push("succeeded");
  for (let count = 0; count < 2; count += 1) assert.equal(await read({ kind: "fault", detail: "502" }), null);
  assert.equal(logged.length, 1);
  assert.equal(report().failure, "new images: 502");
  assert.ok(await find(a));
  assert.equal(report().failure, null);
});

test("new images go out with the commit that is live, and leave the rules about the branch as they are", async (t) => {
  const resolving = makeResolving(t);
  const first = await resolving.deployNew();
  const second = await resolving.deployNew();
  resolving.request("rollback", first);
  await resolving.deploys();
  resolving.request("image", first);
  assert.equal(await resolving.deploys(), first);
  // Rule 6: what was rolled back stays back.
  for (const state of ["succeeded", "failed"] as const) {
    resolving.request("image", first);
    assert.equal(await resolving.deploys(state), first);
    await until("the old head is reported twice", async () => {
      const kind = await resolving.resolver.judgeHead(ref, second);
      assert.notEqual(kind, "deploy");
      return kind === "skipped";
    });
  }
  const third = resolving.project.commit();
  assert.equal(await resolving.resolver.judgeHead(ref, third), "deploy");
});

test("new images wait behind what came meanwhile, and do not go back to the commit before it", async (t) => {
  const resolving = makeResolving(t);
  const first = await resolving.deployNew();
  const second = resolving.project.commit();
  const id = resolving.deliver(second);
  // As if another instance had recorded the push just before.
  resolving.request("image", first);
  assert.equal(findDeployment(resolving.store, id)?.state, "queued");
  assert.equal(await resolving.deploys(), second);
  assert.equal((await resolving.next()).kind, "skipped");
});

test("with ALLOWED_SIGNERS no image is deployed that was found before it was set", async (t) => {
  const resolving = makeResolving(t, { checkSigned: async () => null });
  const commitId = await resolving.deployNew();
  resolving.request("image", commitId);
  assert.equal((await resolving.next()).kind, "refused");
});
