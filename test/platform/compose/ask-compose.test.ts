import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { configHashes } from "../../../src/platform/compose.ts";
import { temporaryDirectory, writeScript } from "../../harness/temporary.ts";
import { sampleContainer } from "../../rollout/sample.ts";

const model = { name: "shop", services: { app: { depends_on: { db: {} } }, db: {} } };
const started = sampleContainer({ configHash: "alone" });

for (const [situation, containers, hashes] of [
  ["on the first start", [], ["alone"]],
  ["if all is as a roll-out left it", [started], ["alone"]],
  ["if a container was started with its dependencies", [sampleContainer()], ["alone", "whole"]],
  ["if another service has changed", [started, sampleContainer({ service: "db" })], ["alone"]],
] as const) {
  test(`${situation}, compose is asked ${hashes.length === 1 ? "once" : "twice"}`, async (t) => {
    const { surroundings, asked } = oldCompose(t);
    const known = await configHashes(surroundings, model, containers);
    assert.deepEqual([known.get("app"), asked()], [hashes, hashes]);
  });
}

/** Compose before 2.29.3, as described in https://github.com/docker/compose/issues/12069: the real one here is newer. */
function oldCompose(t: TestContext) {
  const projectDirectory = temporaryDirectory(t);
  const calls = join(projectDirectory, "calls");
  const hash = "case $(cat) in *depends_on*) echo whole ;; *) echo alone ;; esac";
  writeScript(
    join(projectDirectory, "docker"),
    `#!/bin/sh\nhash=$(${hash})\necho "$hash" >> ${calls}\necho "app $hash"\n`,
  );
  const env = { PATH: [projectDirectory, process.env.PATH].join(delimiter) };
  const { signal } = new AbortController();
  const surroundings = { env, signal, lockDescriptor: undefined, target: { projectDirectory, files: [] } };
  return { surroundings, asked: () => readFileSync(calls, "utf8").trim().split("\n") };
}
