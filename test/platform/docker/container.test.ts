import assert from "node:assert/strict";
import { test } from "node:test";
import {
  discardContainers,
  hostOf,
  imageDirectories,
  inspectContainer,
  inspectImage,
} from "../../../src/platform/docker/containers.ts";
import { EngineRefusal } from "../../../src/platform/docker/engine.ts";
import { engineWith, sampleContainer } from "../../rollout/sample.ts";

test("a digest is no tag, though containerd's store lists it as one", async () => {
  const found = await inspectImage(
    engineWith(() => ({ Id: "1", RepoTags: ["team/app:main", "team/app@sha256:2"] })),
    "1",
  );
  assert.deepEqual(found?.tags, ["team/app:main"]);
});

test("images are in Docker's directory, or where a container sees that disk", async () => {
  const inDirectory = (DockerRootDir: string) => imageDirectories(engineWith(() => ({ DockerRootDir })));
  assert.deepEqual([await inDirectory("/usr"), await inDirectory("/hotpush/none")], [["/usr"], ["/"]]);
});

test("a health check of the image says how long Docker waits before it calls a container unhealthy", async () => {
  const afterMs = async (Healthcheck?: object) => {
    const engine = engineWith(() => ({ Name: "/app", State: {}, Config: { Healthcheck } }));
    return (await inspectContainer(engine, "1"))?.unhealthyAfterMs;
  };
  const Test = ["CMD", "./check"];
  assert.equal(await afterMs({ Test, StartPeriod: 120e9, Interval: 5e9, Timeout: 1e9, Retries: 2 }), 132_000);
  assert.equal(await afterMs({ Test, Interval: 0 }), 180_000);
  assert.deepEqual([await afterMs(), await afterMs({ Test: ["NONE"], StartPeriod: 120e9 })], [0, 0]);
});

test("a container whose name is too long for DNS is found by its short id", () => {
  const id = "0123456789abcdef".repeat(4);
  const names = [
    `shop-${"a".repeat(56)}-1`,
    `shop-${"a".repeat(57)}-1`,
    `${"a".repeat(60)}.${"b".repeat(60)}`,
  ];
  const hosts = names.map((name) => hostOf({ id, name }));
  assert.deepEqual(hosts, [names[0], "0123456789ab", names[2]]);
});

test("each has its own stop grace period, and what the engine keeps is returned", async () => {
  const calls: string[] = [];
  const answer = async (path: string) => {
    calls.push(path);
    // A busy mount is hard to make.
    if (path === "/containers/id-1?force=1") throw new EngineRefusal(500, "device or resource busy");
    return Buffer.alloc(0);
  };
  const engine = { get: answer, post: answer, delete: answer };
  const one = sampleContainer({ number: 1, stopGraceS: 600 });
  const kept = await discardContainers(engine, [one, sampleContainer({ number: 2 })], 60);
  assert.deepEqual(kept, [{ container: one, reason: "device or resource busy" }]);
  assert.deepEqual(calls.sort(), [
    "/containers/id-1/stop?t=60",
    "/containers/id-1?force=1",
    "/containers/id-2/stop?t=10",
    "/containers/id-2?force=1",
  ]);
});
