import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { resultOf } from "../../../src/doctor/check.ts";
import { checkMachineNetworks } from "../../../src/doctor/machine-part/networks.ts";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import { machineContainer } from "../../harness/machine-container.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

/** The check with the projects `shop` and `blog`. */
async function check(t: TestContext, present: readonly string[], joined: readonly string[]) {
  const projectsPath = temporaryDirectory(t);
  for (const name of ["shop", "blog"]) writeFileSync(join(projectsPath, `${name}.env`), "");
  const get = async () => Buffer.from(JSON.stringify(present.map((Name) => ({ Name }))));
  const engine: Engine = { get, post: get, delete: get };
  const docker = { kind: "answers", engine, version: "28.0.0", apiVersion: "1.48", rootPath: "/" } as const;
  const caddy = machineContainer("caddy", { networks: joined });
  const result = resultOf(
    await checkMachineNetworks({
      projectsPath,
      engine: async () => docker,
      machineContainers: async () => new Map([["caddy", caddy]]),
    }),
  );
  return result.outcome === "faulty" ? result.faults.map(({ text }) => text) : result.outcome;
}

const all = ["hotpush", "hotpush-blog", "hotpush-receive", "hotpush-shop"];

test("Caddy in its own network and in those of all projects is right", async (t) => {
  assert.equal(await check(t, all, all), "ok");
});

test("a project's network that is missing or not joined is a problem", async (t) => {
  const [missing] = await check(t, ["hotpush", "hotpush-shop"], ["hotpush", "hotpush-shop"]);
  assert.match(missing ?? "", /^There is no network hotpush-blog, so blog answers no request/);
  const [apart] = await check(t, all, ["hotpush", "hotpush-blog"]);
  assert.match(apart ?? "", /^Caddy is not in hotpush-shop, so shop answers no request/);
});

test("a network that sorts before Caddy's own is a problem", async (t) => {
  const [text] = await check(t, [...all, "aaa"], [...all, "aaa"]);
  assert.match(text ?? "", /^Caddy is also in aaa, which sorts before hotpush/);
});
