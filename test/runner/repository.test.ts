import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import { fetchBranch, readRemoteHead } from "../../src/platform/git.ts";
import { createProjectScript } from "../../src/runner/script.ts";
import { testSecret } from "../harness/delivery.ts";
import { listenHere } from "../harness/listen.ts";
import { readProcesses } from "../harness/processes.ts";
import { git, makeProject } from "../harness/repository.ts";
import { until } from "../harness/until.ts";

const secrets = { current: makeSecret(testSecret), previous: null };

test("a remote that does not answer is given up, and no process is left", async (t) => {
  const { repoPath } = makeProject(t);
  const url = `http://127.0.0.1:${await listenHere(t, createServer())}/shop.git`;
  git(repoPath, "remote", "set-url", "origin", url);
  const script = createProjectScript({ env: process.env, deployEnv: [], repoPath, secrets });
  const isLeft = () => readProcesses().some(({ command }) => command.includes(url));
  const head = await readRemoteHead(script(), "refs/heads/main", { timeoutMs: 1_000 });
  assert.match(head.kind === "unknown" ? head.detail : "", /the remote did not answer within 1 s\.$/);
  const unwanted = new AbortController();
  const fetch = (silenceMs: number) =>
    fetchBranch(script(), "refs/heads/main", { signal: unwanted.signal, silenceMs });
  assert.match((await fetch(1_000)) ?? "", /no progress for 1 s/);
  await until("all are gone", () => !isLeft());
  const fetching = fetch(60_000);
  await until("git asks", isLeft);
  unwanted.abort();
  assert.match((await fetching) ?? "", /aborted/);
  await until("all are gone", () => !isLeft());
});

test("the remote is the one that the script pulls from", async (t) => {
  const { repoPath } = makeProject(t);
  git(repoPath, "remote", "rename", "origin", "upstream");
  const env = { ...process.env, DEPLOY_REMOTE: "upstream" };
  const script = createProjectScript({ env, deployEnv: ["DEPLOY_REMOTE"], repoPath, secrets });
  const head = await readRemoteHead(script(), "refs/heads/main");
  assert.deepEqual(head, { kind: "head", commit: git(repoPath, "rev-parse", "upstream/main") });
});
