import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { type Mutation, makeMutant } from "../harness/mutant.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const pushes = 100;

test(
  `for each of ${pushes} pushes the log of the database is synced before the 202 is sent`,
  needs("strace"),
  async (t) => {
    assert.deepEqual(await findPremature(t), []);
  },
);

const mutations: Readonly<Record<string, Mutation>> = {
  "a reply that does not wait for the transaction": {
    file: "deployments/queue.ts",
    from: "new Promise((resolve, reject) => {",
    to: `new Promise((resolve, reject) => {
      resolve({ kind: "accepted", deployment: { id: 0, ref: push.ref, commit: push.commit, state: "queued" } });`,
  },
  "a commit that does not sync": {
    file: "platform/sqlite/open-database.ts",
    from: "PRAGMA synchronous = FULL",
    to: "PRAGMA synchronous = NORMAL",
  },
};

for (const [what, mutation] of Object.entries(mutations)) {
  test(`the test above would notice ${what}`, needs("strace"), async (t) => {
    assert.notDeepEqual(await findPremature(t, makeMutant(t, mutation)), []);
  });
}

/** Traces the system calls of a service during single and simultaneous pushes. @returns the 202s sent too early */
async function findPremature(t: TestContext, mainPath?: string): Promise<string[]> {
  const tracePath = join(temporaryDirectory(t), "trace");
  const service = await startService(t, { wrapper: tracer(tracePath), ...(mainPath ? { mainPath } : {}) });
  const commits = Array.from({ length: pushes }, randomCommit);
  const push = async (after: string) => (await deliver(service.url, githubPush({ after }))).status;
  for (const commit of commits.slice(0, pushes / 2)) assert.equal(await push(commit), 202);
  for (let start = pushes / 2; start < pushes; start += 10) {
    const statuses = await Promise.all(commits.slice(start, start + 10).map(push));
    assert.ok(statuses.every((status) => status === 202));
  }
  await service.end();
  await until("the trace is complete", () => readFileSync(tracePath, "utf8").includes("+++ exited"));
  const calls = readFileSync(tracePath, "utf8").split("\n");
  return commits.filter((commit) => !isSyncedBeforeReply(calls, commit));
}

/** The commit is written to the log of the database, the log is synced, and only then the reply that names it is sent. */
function isSyncedBeforeReply(calls: readonly string[], commit: string): boolean {
  const stored = calls.findIndex((call) => /^pwrite64\(\d+<[^>]*-wal>/.test(call) && call.includes(commit));
  const synced = calls.findIndex(
    (call, index) => index > stored && /^f(data)?sync\(\d+<[^>]*-wal>\) += 0$/.test(call),
  );
  const replied = calls.findIndex(
    (call) => /^(write|writev|sendto)\(\d+<socket/.test(call) && call.includes(commit),
  );
  assert.notEqual(replied, -1, `the reply for ${commit} is in the trace`);
  return stored !== -1 && stored < synced && synced < replied;
}

/** -y: descriptors with their paths; -s: whole pages of the database, which contain the commits. */
function tracer(tracePath: string): string[] {
  const calls = "trace=pwrite64,fsync,fdatasync,write,writev,sendto";
  return ["strace", "-D", "-y", "-s", "8192", "-o", tracePath, "-e", calls];
}
