import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { resolveDigests } from "../../src/platform/compose.ts";
import { ProblemError } from "../../src/problems.ts";
import { watchedImages } from "../../src/rollout/registry-images.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { sampleService } from "./sample.ts";

const pulled = (image: string) => sampleService({ image, isBuilt: false, hasBuild: false });

test("images that CI may push are watched, once each; not databases, digests and official ones", () => {
  const services = [
    sampleService({ image: "ghcr.io/team/built:main" }),
    pulled("ghcr.io/team/app:main"),
    { ...pulled("ghcr.io/team/app:main"), name: "worker" },
    pulled("team/site"),
    pulled("redis:7"),
    pulled("ghcr.io/team/app@sha256:1"),
    { ...pulled("team/database:18"), replacement: { how: "recreate", reason: "volume /data" } as const },
    { ...pulled("team/migration:main"), replacement: { how: "run-once" } as const },
    { ...pulled("team/off:main"), replicas: 0 },
  ];
  assert.deepEqual(watchedImages(services), ["ghcr.io/team/app:main", "team/site"]);
});

/** Asks a docker that does what `script` says. */
function resolveBy(t: TestContext, script: string): Promise<readonly string[]> {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), `#!/bin/sh\n${script}\n`);
  const { signal } = new AbortController();
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const options = { target: { projectDirectory: directory, files: [] }, env, signal };
  return resolveDigests({ ...options, lockDescriptor: undefined }, ["team/app:main"]);
}

test("a registry that does not answer within a minute is given up", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const resolving = resolveBy(t, "sleep 600");
  t.mock.timers.tick(60_000);
  await assert.rejects(resolving, isFault(/no answer within 60 s/));
});

test("what compose says about a registry is passed on", async (t) => {
  await assert.rejects(
    resolveBy(t, "echo team/app:main: denied >&2; exit 1"),
    isFault(/team\/app:main: denied/),
  );
});

function isFault(pattern: RegExp) {
  return (error: unknown) =>
    error instanceof ProblemError &&
    error.problem.code === "image_pull_failed" &&
    pattern.test(error.message);
}
