import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cancelQueued, resume, settle } from "../../src/deployments/record.ts";
import type { Decision } from "../../src/deployments/resolve.ts";
import { claimNext, putBack } from "../../src/deployments/store.ts";
import { git } from "../harness/repository.ts";
import { makeResolving } from "../harness/resolving.ts";
import { commitOf, pushOf, record } from "../harness/store.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const ref = "refs/heads/main";

function reasonOf(decision: Decision): string {
  return "reason" in decision ? decision.reason : "";
}

/** A project whose git does something else with one of its commands. */
function makeWithGit(t: TestContext, options: Parameters<typeof makeResolving>[1] = {}) {
  const directory = temporaryDirectory(t);
  const resolving = makeResolving(t, { ...options, searchPath: directory });
  const onGit = (command: string, does: string) => {
    const odd = `case " $* " in *" ${command} "*) ${does} ;; esac`;
    writeScript(join(directory, "git"), `#!/bin/sh\nPATH=\${PATH#*:}\n${odd}\nexec git "$@"\n`);
  };
  return { ...resolving, directory, onGit };
}

test("the head is deployed, whichever of its commits was pushed", async (t) => {
  const { project, deliver, deploys, read, resolver } = makeResolving(t);
  const older = project.commit();
  const head = project.push("The head");
  const id = deliver(older);
  assert.equal(await deploys(), head);
  const { commit, checkedOutCommit, subject, author } = read(id);
  assert.deepEqual([commit, checkedOutCommit, subject, author], [older, head, "The head", "Test"]);
  assert.equal(await resolver.judgeHead(ref, head), "skipped");
});

test("a commit that is not there yet is looked for again", async (t) => {
  const { project, deliver, deploys, moveTo, onGit } = makeWithGit(t);
  const before = git(project.remotePath, "rev-parse", "main");
  const head = project.commit();
  moveTo(before);
  onGit("ls-remote", `git "$@"; git --git-dir ${project.remotePath} update-ref ${ref} ${head}; exit`);
  deliver(head);
  assert.equal(await deploys(), head);
});

test("a head that the remote names but does not hand over is not deployed", async (t) => {
  const { deliver, next, onGit } = makeWithGit(t);
  const named = commitOf("only a name");
  onGit("ls-remote", `printf '${named}\\t${ref}\\n'; exit`);
  deliver(named);
  assert.equal((await next()).kind, "wait");
});

// Rule 1

test("1: while the remote is silent, a push waits with the reason, and is deployed when it answers", async (t) => {
  const { project, deliver, deploys, next, read } = makeResolving(t);
  const head = project.commit();
  renameSync(project.remotePath, `${project.remotePath}.away`);
  const id = deliver(head);
  assert.equal((await next()).kind, "wait");
  assert.match(read(id).waitReason ?? "", /git ls-remote failed/);
  renameSync(`${project.remotePath}.away`, project.remotePath);
  assert.equal(await deploys(), head);
});

test("1: a slow host is waited for outside of the turn, asked once, and its answer is the next look", async (t) => {
  const { project, deliver, next, directory, onGit } = makeWithGit(t, { maxLookMs: 300 });
  const [answers, asked] = [join(directory, "answers"), join(directory, "asked")];
  onGit("ls-remote", `echo >>${asked}; while [ ! -e ${answers} ]; do sleep 0.02; done`);
  const head = project.commit();
  deliver(head);
  for (const turn of [1, 2, 3]) assert.match(reasonOf(await next()), /host is slow/, `turn ${turn}`);
  assert.equal(readFileSync(asked, "utf8"), "\n");
  writeFileSync(answers, "");
  const deployed = () =>
    until("the host has answered", async () => {
      const decision = await next();
      return decision.kind === "deploy" ? decision.commit : null;
    });
  assert.equal(await deployed(), head);
  assert.equal(readFileSync(asked, "utf8"), "\n");
  const newer = project.commit();
  deliver(newer);
  assert.equal(await deployed(), newer);
});

test("1: the late answer of a slow host is forgotten after a minute, because the branch may have moved on", async (t) => {
  let [nowMs, asked] = [0, 0];
  const clock = () => {
    asked += 1;
    return nowMs;
  };
  const { project, deliver, next, directory, onGit } = makeWithGit(t, { maxLookMs: 300, clock });
  const slow = join(directory, "slow");
  writeFileSync(slow, "");
  onGit("ls-remote", `while [ -e ${slow} ]; do sleep 0.02; done`);
  deliver(project.push("Older"));
  assert.match(reasonOf(await next()), /host is slow/);
  const before = asked;
  rmSync(slow);
  await until("the answer is there", async () => asked > before || null);
  const newer = project.push("Newer");
  nowMs = 60_001;
  const decision = await until("the host is asked again", async () => {
    const one = await next();
    return one.kind === "wait" ? null : one;
  });
  assert.equal(decision.kind === "deploy" && decision.commit, newer);
});

test("1: a push that has waited too long for its remote fails, and catch-up may deploy it", async (t) => {
  const { project, deliver, next, read, resolver, deployNew } = makeResolving(t, { patienceMs: 0 });
  await deployNew();
  const head = project.commit();
  renameSync(project.remotePath, `${project.remotePath}.away`);
  const id = deliver(head);
  assert.equal((await next()).kind, "refused");
  assert.deepEqual([read(id).state, read(id).problem?.code], ["failed", "fetch_failed"]);
  renameSync(`${project.remotePath}.away`, project.remotePath);
  await until("catch-up would", async () => (await resolver.judgeHead(ref, head)) === "deploy");
});

test("1: what has only a name that ends like the branch's is not deployed", async (t) => {
  const { project, deliver, deploys, next } = makeResolving(t);
  const main = git(project.remotePath, "rev-parse", "main");
  const stranger = git(project.remotePath, "commit-tree", "main^{tree}", "-p", "main", "-m", "not main");
  // `git ls-remote origin refs/heads/main` lists it too, and before main itself: anyone who may create a branch can push it.
  git(project.remotePath, "update-ref", "refs/heads/a/refs/heads/main", stranger);
  git(project.remotePath, "tag", "refs/heads/master", "main");
  deliver(main);
  assert.equal(await deploys(), main);
  deliver(main, { ref: "refs/heads/master" });
  assert.match(reasonOf(await next()), /has no refs\/heads\/master/);
});

test("1: only without a remote the pushed commit is deployed unseen, if it need not be signed", async (t) => {
  for (const [checkSigned, kind] of [
    [null, "deploy"],
    [async () => null, "refused"],
  ] as const) {
    const { project, deliver, next, read } = makeResolving(t, { checkSigned });
    git(project.repoPath, "remote", "remove", "origin");
    const id = deliver(git(project.repoPath, "rev-parse", "HEAD"));
    assert.equal((await next()).kind, kind);
    assert.equal(read(id).checkedOutCommit, null);
  }
});

test("the head, and not the pushed commit, must be signed", async (t) => {
  const asked: string[] = [];
  const checkSigned = async (_: unknown, commit: string) => {
    asked.push(commit);
    return { code: "commit_unsigned", detail: "for a test" } as const;
  };
  const { project, deliver, next } = makeResolving(t, { checkSigned });
  const older = project.commit();
  const head = project.commit();
  deliver(older);
  assert.equal((await next()).kind, "refused");
  assert.deepEqual(asked, [head]);
});

for (const question of ["ls-remote", "fetch"]) {
  test(`4: a push that is cancelled while git ${question} hangs waits no longer for it`, async (t) => {
    const { project, store, resolver, deliver, directory, onGit } = makeWithGit(t);
    const asked = join(directory, "asked");
    onGit(question, `touch ${asked}; exec sleep 600`);
    deliver(project.commit());
    const claimed = store.transaction(() => claimNext(store)) ?? assert.fail();
    const unwanted = new AbortController();
    const deciding = resolver.resolve(claimed, unwanted.signal);
    await until("git asks", () => existsSync(asked));
    unwanted.abort();
    assert.equal((await deciding).kind, "wait");
  });
}

test("a verification that is ended half-way leaves the push in the queue", async (t) => {
  const unwanted = new AbortController();
  const checkSigned = async () => {
    unwanted.abort();
    throw new Error("git verify-commit did not end (aborted)");
  };
  const { project, store, resolver, deliver } = makeResolving(t, { checkSigned });
  deliver(project.commit());
  const claimed = store.transaction(() => claimNext(store)) ?? assert.fail();
  assert.equal((await resolver.resolve(claimed, unwanted.signal)).kind, "wait");
});

// Rule 2

test("2: Redeliver of a failed one runs the head, until a newer one has succeeded", async (t) => {
  const { project, store, deploys, deployNew } = makeResolving(t);
  const old = project.commit();
  const delivery = pushOf({ commit: old as never });
  record(store, delivery);
  await deploys("failed");
  assert.equal(record(store, delivery).kind, "accepted");
  assert.equal(await deploys("failed"), old);
  await deployNew();
  assert.equal(record(store, delivery).kind, "duplicate");
});

test("2: a roll back that ran while a delivery was sent again is not undone by it", (t) =>
  assertNotUndone(t, ({ request }, good) => request("rollback", good)));

test("2: what a newer push deployed while a delivery was sent again is not deployed again", (t) =>
  assertNotUndone(t, ({ deliver, project }) => deliver(project.commit())));

async function assertNotUndone(
  t: TestContext,
  ask: (resolving: ReturnType<typeof makeResolving>, good: string) => unknown,
) {
  const resolving = makeResolving(t);
  const { project, store, deploys, next, resolver } = resolving;
  const good = await resolving.deployNew();
  const delivery = pushOf({ commit: project.commit() as never });
  record(store, delivery);
  await deploys("failed");
  ask(resolving, good);
  const running = store.transaction(() => claimNext(store)) ?? assert.fail();
  await resolver.resolve(running, new AbortController().signal);
  assert.equal(record(store, delivery).kind, "accepted");
  store.transaction(() => settle(store, running, { state: "succeeded", exitCode: 0, problem: null }));
  assert.equal((await next()).kind, "skipped");
}

// Rule 3

test("3: catch-up deploys nothing before a first deployment", async (t) => {
  const { project, resolver, deployNew } = makeResolving(t);
  assert.equal(await resolver.judgeHead(ref, project.commit()), "skipped");
  await deployNew("failed");
  assert.equal(await resolver.judgeHead(ref, project.commit()), "skipped");
});

// Rule 4

test("4: a late push of an old commit does not roll back while the host lags", async (t) => {
  const { project, deliver, next, moveTo, deployNew } = makeResolving(t, { confirmMs: 60_000 });
  const old = project.commit();
  const live = await deployNew();
  moveTo(old);
  deliver(old);
  assert.equal((await next()).kind, "wait");
  moveTo(live);
  assert.equal((await next()).kind, "skipped");
});

// Rule 5

test("5: a push whose head is live is skipped, and names the deployment that made it live", async (t) => {
  const { project, deliver, next, deployNew } = makeResolving(t);
  const older = project.commit();
  const head = await deployNew();
  for (const commit of [head, older]) {
    deliver(commit);
    assert.match(reasonOf(await next()), /is live since deployment 1\.$/);
  }
});

test("5: a live head is deployed again if a script has begun since, waited and was superseded", async (t) => {
  const { project, store, resolver, deliver, deployNew, next, moveTo, read } = makeResolving(t);
  const before = await deployNew();
  const id = deliver(project.commit());
  const begun = store.transaction(() => claimNext(store)) ?? assert.fail();
  assert.equal((await resolver.resolve(begun, new AbortController().signal)).kind, "deploy");
  store.transaction(() => {
    settle(store, begun, { state: "interrupted", exitCode: null, problem: null });
    resume(store, id);
    putBack(store, claimNext(store) ?? assert.fail(), "The remote is silent.");
  });
  moveTo(before);
  deliver(before);
  await until("the host is believed", async () => (await next()).kind !== "wait");
  assert.equal(read(3).state, "succeeded");
});

// Rule 6

test("6: after a roll back, only a new head or a person ends it", async (t) => {
  const { project, deliver, request, deploys, next, resolver, deployNew } = makeResolving(t);
  const good = project.commit();
  const bad = await deployNew();
  request("rollback", good);
  assert.equal(await deploys(), good);
  assert.equal(await resolver.judgeHead(ref, bad), "wait");
  await until("it is sure", async () => (await resolver.judgeHead(ref, bad)) === "skipped");
  deliver(bad);
  const late = await next();
  assert.equal(late.kind, "skipped");
  assert.match(reasonOf(late), /Deployment 2 has rolled back/);
  request("manual", bad);
  assert.equal(await deploys(), bad);
  request("rollback", good);
  await deploys();
  await deployNew();
});

// Rule 7

test("7: a commit that failed or was cancelled is not retried by itself", async (t) => {
  const { deliver, next, resolver, deployNew } = makeResolving(t);
  await deployNew();
  for (const state of ["failed", "cancelled"] as const) {
    const head = await deployNew(state);
    deliver(head);
    const second = await next();
    assert.equal(second.kind, "skipped");
    assert.match(reasonOf(second), /was deployed by deployment \d, which (failed|was cancelled)/);
    await until("catch-up is sure", async () => (await resolver.judgeHead(ref, head)) === "skipped");
  }
  await deployNew();
});

test("7: a push that is cancelled while it waits is deployed only if it is sent again", async (t) => {
  const { project, store, resolver, deploys, deployNew } = makeResolving(t);
  await deployNew();
  const head = project.commit();
  const delivery = pushOf({ commit: head as never });
  const { id } = record(store, delivery).deployment;
  store.transaction(() => {
    putBack(store, claimNext(store) ?? assert.fail(), "Its checks have not ended.");
    cancelQueued(store, id, null);
  });
  await until("catch-up is sure", async () => (await resolver.judgeHead(ref, head)) === "skipped");
  assert.equal(record(store, delivery).kind, "accepted");
  assert.equal(await deploys(), head);
});

// Rule 8

test("8: [skip deploy] covers its own push", async (t) => {
  const { project, deliver, deploys, next, read, resolver, deployNew } = makeResolving(t);
  const live = await deployNew();
  project.push("One of two");
  const marked = project.push("Notes [Skip Deploy]");
  deliver(marked, { before: live as never });
  const decision = await next();
  assert.equal(decision.kind, "skipped");
  assert.match(reasonOf(decision), /has \[skip deploy\]/);
  assert.equal(read(2).subject, "Notes [Skip Deploy]");
  await until("catch-up is sure", async () => (await resolver.judgeHead(ref, marked)) === "skipped");
  const again = project.push("[skip deploy] more");
  deliver(again, { before: marked as never });
  assert.equal((await next()).kind, "skipped", "what was skipped before does not count");
  const told = project.push("Explain the mark\n\nIt is [skip deploy].");
  deliver(told, { before: again as never });
  assert.equal(await deploys(), told);
});

test("8: [skip deploy] hides nothing that precedes it: a lost, a failed or a superseded push", async (t) => {
  const { project, deliver, deploys, deployNew } = makeResolving(t);
  await deployNew();
  const lost = project.commit();
  let marked = project.push("a [skip deploy]");
  deliver(marked, { before: lost as never });
  assert.equal(await deploys(), marked);
  const failed = await deployNew("failed");
  marked = project.push("b [skip deploy]");
  deliver(marked, { before: failed as never });
  assert.equal(await deploys(), marked);
  const superseded = project.commit();
  deliver(superseded);
  marked = project.push("c [skip deploy]");
  deliver(marked, { before: superseded as never });
  assert.equal(await deploys(), marked);
});

test("8: the mark skips no first deployment, and speaks for one commit if none is known before", async (t) => {
  const { project, deliver, deploys, next } = makeResolving(t, { paths: ["app"] });
  const first = project.push("[skip deploy]");
  deliver(first);
  assert.equal(await deploys(), first);
  deliver(project.push("a [skip deploy]"));
  assert.equal((await next()).kind, "skipped");
  project.push("app", { app: "1" });
  const marked = project.push("b [skip deploy]");
  deliver(marked);
  assert.equal(await deploys(), marked);
});

test("8: DEPLOY_PATHS compares with what is live, and skips nothing after a failure", async (t) => {
  const { project, deliver, deploys, next, request } = makeResolving(t, { paths: ["app"] });
  deliver(project.push("app", { app: "1" }));
  await deploys();
  const notes = project.push("notes", { notes: "1" });
  deliver(notes);
  assert.equal((await next()).kind, "skipped");
  deliver(project.push("app", { app: "2" }));
  await deploys("failed");
  const back = project.push("back", { app: "1" });
  deliver(back);
  assert.equal(await deploys(), back);
  request("manual", notes);
  assert.equal(await deploys(), back);
});

test("8: DEPLOY_PATHS are patterns of paths from the root, and those with ! are left out", async (t) => {
  const paths = ["apps/shop/**", "packages/*/src", "!**/*.md"];
  const { project, deliver, next } = makeResolving(t, { paths });
  deliver(project.push("first"));
  await next();
  for (const [file, kind] of [
    ["apps/blog/a.ts", "skipped"],
    ["apps/shop/src/a.ts", "deploy"],
    ["apps/shop/README.md", "skipped"],
    ["shop.ts", "skipped"],
    ["packages/ui/src/a.ts", "deploy"],
    ["packages/ui/test.ts", "skipped"],
  ] as const) {
    deliver(project.push(file, { [file]: file }));
    assert.equal((await next()).kind, kind, file);
  }
});

// What is recorded

test("a roll back records the commit that it goes back to, and asks no remote", async (t) => {
  const { project, deliver, request, deploys, read } = makeResolving(t);
  const good = project.push("The good one");
  deliver(good);
  await deploys();
  renameSync(project.remotePath, `${project.remotePath}.away`);
  const id = request("rollback", good);
  assert.equal(await deploys(), good);
  assert.deepEqual([read(id).checkedOutCommit, read(id).subject], [null, "The good one"]);
});
