import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import { readRemoteHead } from "../../src/runner/repository.ts";
import { testSecret } from "../harness/delivery.ts";
import { listenHere } from "../harness/listen.ts";
import { git, makeProject } from "../harness/project.ts";
import { until } from "../harness/until.ts";

const secrets = { current: makeSecret(testSecret), previous: null };

test("of a remote that does not answer in time, that is told, and no process is left", async (t) => {
  const { repoPath } = makeProject(t);
  const port = await listenHere(t, createServer());
  const url = `http://127.0.0.1:${port}/shop.git`;
  git(repoPath, "remote", "set-url", "origin", url);
  const asking = readRemoteHead(
    { env: process.env, deployEnv: [], repoPath, secrets },
    "refs/heads/main",
    1_000,
  );
  await until("git asks", () => processesWith(url).length > 0);
  const head = await asking;
  assert.match(head.kind === "unknown" ? head.detail : "", /the remote did not answer within 1 s$/);
  await until("all are gone", () => processesWith(url).length === 0);
});

test("the remote is the one that the script is told to pull from", async (t) => {
  const { repoPath } = makeProject(t);
  git(repoPath, "remote", "rename", "origin", "upstream");
  const head = await readRemoteHead(
    { env: { ...process.env, DEPLOY_REMOTE: "upstream" }, deployEnv: ["DEPLOY_REMOTE"], repoPath, secrets },
    "refs/heads/main",
  );
  assert.deepEqual(head, { kind: "head", commit: git(repoPath, "rev-parse", "upstream/main") });
});

/** The processes with `text` among their arguments; zombies have none. */
function processesWith(text: string): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && argumentsOf(name).includes(text));
}

function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
