import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import { requireDiskSpace } from "../../../src/rollout/images/disk-guard.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { sampleService } from "../sample.ts";

function engineWithImageOf(sizeBytes: number): Engine {
  const answer = (path: string) =>
    path === "/info"
      ? { DockerRootDir: tmpdir() }
      : { Id: "sha256:1", RepoTags: [], Size: sizeBytes, Created: "" };
  const get = (path: string) => Promise.resolve(Buffer.from(JSON.stringify(answer(path))));
  return { get, post: get, delete: get };
}

const services = [sampleService()];

test("with too little space, removes old images first, then says what is needed", async () => {
  const done: string[] = [];
  const rollout = { engine: engineWithImageOf(1024 ** 5), env: {}, report: () => done.push("note") };
  const prune = async () => {
    done.push("prune");
  };
  await assert.rejects(
    requireDiskSpace(rollout, services, prune),
    isProblem("disk_full", /needs 2097152 GiB of free disk space .* GiB are left .* Nothing was changed/),
  );
  assert.deepEqual(done, ["note", "prune"]);
});

test("HOTPUSH_MIN_FREE says how much is needed, and a wrong one is refused", async () => {
  const never = () => Promise.reject(new Error("pruned"));
  const rollout = { engine: engineWithImageOf(1024 ** 5), report: () => {} };
  await requireDiskSpace({ ...rollout, env: { HOTPUSH_MIN_FREE: "1 MiB" } }, services, never);
  const wrong = requireDiskSpace({ ...rollout, env: { HOTPUSH_MIN_FREE: "lots" } }, services, never);
  await assert.rejects(wrong, isProblem("configuration_invalid", /HOTPUSH_MIN_FREE is "lots"/));
});
