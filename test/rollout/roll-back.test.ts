import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { type RolloutRequest, readVersionChoice } from "../../src/rollout/request.ts";
import { rollBackBy } from "../../src/rollout/roll-back.ts";
import { type Version, writeVersions } from "../../src/rollout/versions.ts";
import { isProblem } from "../harness/is-problem.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const succeeded = { kind: "succeeded", commit: "", services: [] } as const;
const [first, second, third] = [versionOf("1"), versionOf("2"), versionOf("3")];

test("the version is chosen under the lock: the one before the live one", async (t) => {
  const path = join(temporaryDirectory(t), "shop.json");
  await writeVersions(path, [first, second]);
  const chosen: (Version | null)[] = [];
  const rollOut = async (asked: RolloutRequest) => {
    // Another roll-out, which this one has waited for, has added a version.
    await writeVersions(path, [first, second, third]);
    chosen.push((await readVersionChoice(asked)).version);
    return succeeded;
  };
  await rollBackBy(rollOut, requestWith(path), undefined);
  assert.deepEqual(chosen, [second]);
});

test("without a matching good version, the error lists the ones that exist", async (t) => {
  const path = join(temporaryDirectory(t), "shop.json");
  await writeVersions(path, [first]);
  const rollOut = async (asked: RolloutRequest) => {
    const detail = /no good version of the commit 9 .*: 1{12}\. Nothing was changed\./;
    await assert.rejects(readVersionChoice(asked), isProblem("no_previous_version", detail));
    return succeeded;
  };
  await rollBackBy(rollOut, requestWith(path), "9");
});

function versionOf(digit: string): Version {
  const images = { app: { image: "shop-app", id: `sha256:${digit}`, tag: `shop-app:${digit}` } };
  return { commit: digit.repeat(40), finishedAt: `2026-01-0${digit}T00:00:00Z`, images };
}

function requestWith(versionsPath: string): RolloutRequest {
  const unused = async () => Buffer.alloc(0);
  return {
    engine: { get: unused, post: unused, delete: unused },
    target: { projectDirectory: "/nonexistent", files: [] },
    env: {},
    services: [],
    commit: undefined,
    liveDirectory: undefined,
    lockPath: "",
    versionsPath,
    statePath: "",
    lockWaitS: 0,
    withBuild: true,
    withPull: false,
    report: () => {},
    signal: new AbortController().signal,
  };
}
