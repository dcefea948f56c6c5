import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { mainRefs } from "../../src/deployments/push.ts";
import type { Log } from "../../src/log.ts";
import type { Project, ProjectRegistry, Shared } from "../../src/projects/project.ts";
import { takePushes } from "../../src/projects/take-pushes.ts";
import { countOf, openDefault, pushOf } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** What reads a spool, with a real database and a project that only records. */
function start(t: TestContext, directory = temporaryDirectory(t), project: Partial<Project> | null = null) {
  const spoolPath = join(directory, "spool");
  mkdirSync(spoolPath, { recursive: true });
  const store = openDefault(directory);
  const stopping = new AbortController();
  const logged: string[] = [];
  const keep = ({ event }: { event: string }) => void logged.push(event);
  const log = { info: keep, warn: keep, error: keep } as unknown as Log;
  const registry = {
    find: () => project,
    faults: () => new Map([["shop", "is broken, so its pushes wait"]]),
    refresh() {},
  } as unknown as ProjectRegistry;
  const shared = {
    service: { spoolPath, statePath: directory },
    store,
    log,
    stopping: stopping.signal,
  } as unknown as Shared;
  const inbox = takePushes(shared, registry, true);
  const stop = () => {
    stopping.abort();
    return inbox.ended;
  };
  t.after(async () => {
    await stop();
    store.close();
  });
  return {
    directory,
    spoolPath,
    store,
    logged,
    inbox,
    count: () => countOf(store.of("shop"), "deliveries"),
    isNoted: (id: string) => store.get("SELECT 1 FROM spooled WHERE id = ?", id) !== undefined,
    stop,
  };
}

const newId = () => randomBytes(16).toString("hex");

function put(spoolPath: string, value: unknown, id = newId()): string {
  const path = join(spoolPath, `${id}.push`);
  writeFileSync(`${path}.new`, typeof value === "string" ? value : JSON.stringify(value));
  renameSync(`${path}.new`, path);
  return id;
}

const good = () => ({ project: "shop", push: pushOf() });

test("a push that nobody offers is recorded once, and once more after no restart", async (t) => {
  const first = start(t);
  const id = put(first.spoolPath, good());
  await until("it is recorded", () => first.count() === 1);
  assert(first.isNoted(id));
  await first.stop();
  const second = start(t, first.directory);
  const other = put(second.spoolPath, good());
  await until("the next one is recorded", () => second.isNoted(other));
  assert.equal(second.count(), 2);
});

test("an offered push is answered with its record, each time, and recorded once", async (t) => {
  const { spoolPath, inbox, count } = start(t);
  const id = put(spoolPath, good());
  for (const pushes of [inbox.record([id, id, newId()]), inbox.record([id])]) {
    assert.deepEqual(
      pushes?.map((one) => [one.id, one.record?.kind]),
      [[id, "accepted"]],
    );
  }
  assert.equal(count(), 1);
});

test("what is no push is refused for good, neither followed nor waited for, and others are taken", async (t) => {
  const { spoolPath, directory, isNoted, count, logged } = start(t);
  const { project, push } = good();
  const faulty = Object.entries({
    "another branch": { ref: "refs/heads/dev" },
    "an option as its commit": { commit: "--upload-pack=x" },
    "a short commit": { commit: "abc1234" },
    "a list as its commit": { commit: ["a".repeat(40)] },
    "no digest": { digest: "" },
    "a host with control characters": { host: "git\u001b[2Jhub" },
    "a commit before that is none": { before: "HEAD~1" },
  }).map(([what, value]) => [what, put(spoolPath, { project, push: { ...push, ...value } })] as const);
  writeFileSync(join(directory, "good"), JSON.stringify(good()));
  const makers: Readonly<Record<string, (path: string) => unknown>> = {
    "a link to a good file": (path) => symlinkSync(join(directory, "good"), path),
    "a link to a device": (path) => symlinkSync("/dev/zero", path),
    "a FIFO": (path) => execFileSync("mkfifo", [path]),
    "a directory": (path) => mkdirSync(path),
    "too much": (path) => writeFileSync(path, JSON.stringify({ ...good(), more: "x".repeat(20_000) })),
    "deep JSON": (path) => writeFileSync(path, "[".repeat(16_000)),
    nothing: (path) => writeFileSync(path, ""),
  };
  const odd = Object.entries(makers).map(([what, make]) => {
    const id = newId();
    make(join(spoolPath, `${id}.push`));
    return [what, id] as const;
  });
  const other = put(spoolPath, good());
  for (const [what, id] of [...faulty, ...odd]) await until(`${what} is refused`, () => isNoted(id));
  await until("the good one is taken", () => isNoted(other));
  assert.equal(count(), 1);
  assert(logged.includes("spool.refused"));
});

test("what is only for people is left out if it could steer a terminal", async (t) => {
  const { spoolPath, store, count } = start(t);
  const push = { ...pushOf(), repository: "a b", pusher: "oc\u001b[31mto", deliveryId: "a b", extra: 1 };
  put(spoolPath, { project: "shop", push });
  await until("it is recorded", () => count() === 1);
  const row = store.of("shop").get("SELECT repository, pusher, delivery_id FROM deployments");
  assert.deepEqual({ ...row }, { repository: null, pusher: null, delivery_id: null });
});

test("of a flood of dry runs four run at once, and the others get no answer", async (t) => {
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  const project = {
    isServed: true,
    refs: mainRefs,
    settings: { repository: undefined },
    async dryRun() {
      running += 1;
      most = Math.max(most, running);
      await isOver;
      running -= 1;
      return { deploy: null };
    },
  } as unknown as Project;
  const { inbox } = start(t, temporaryDirectory(t), project);
  const answers = Array.from({ length: 40 }, () => inbox.dryRun({ project: "shop", push: pushOf() }));
  end();
  const answered = (await Promise.all(answers)).filter(({ would }) => would !== null);
  assert.deepEqual([most, answered.length], [4, 4]);
});

test("the last delivery of each kind that deploys nothing is kept through a restart, until a push follows", async (t) => {
  const found: Partial<Project> = { name: "shop" };
  const first = start(t, temporaryDirectory(t), found);
  const missed = { project: "shop", at: new Date().toISOString(), host: "gitea", repository: null } as const;
  const refused = { ...missed, kind: "refused", reason: "signature_invalid" } as const;
  const ignored = {
    ...missed,
    kind: "ignored",
    reason: "other_repository",
    repository: "octo/store",
  } as const;
  assert(first.inbox.noteUses([refused, { ...refused, reason: "signature_missing" }, ignored]));
  await first.stop();
  const { inbox, store, stop } = start(t, first.directory, found);
  const project = { name: "shop", store: store.of("shop") } as unknown as Project;
  assert.deepEqual(inbox.missedOf(project), [{ ...refused, reason: "signature_missing" }, ignored]);
  assert.deepEqual(inbox.missedOf({ ...project, name: "blog" } as Project), []);
  const atMs = Date.parse(missed.at) + 1;
  store.transaction(() =>
    project.store.run(
      `INSERT INTO deployments (project, trigger, ref, commit_id, state, queue_order, created_at_ms)
        VALUES ($project, 'push', 'refs/heads/main', 'x', 'skipped', 1, ?)`,
      atMs,
    ),
  );
  assert.deepEqual(inbox.missedOf(project), []);
  await stop();
});

test("uses of one secret are written and looked at once, however many are noted in a call", (t) => {
  const done: string[] = [];
  const noteSecretUse = () => void done.push("written");
  const lookSoon = () => void done.push("looked");
  const project = { noteSecretUse, lookSoon } as unknown as Project;
  const { inbox } = start(t, temporaryDirectory(t), project);
  const use = { project: "shop", slot: "current", host: "github", deliveryId: null } as const;
  assert(inbox.noteUses(Array.from({ length: 50 }, () => use)));
  assert.deepEqual(done, ["written", "looked"]);
  assert(!inbox.noteUses([use]), "the next one has to wait");
});
