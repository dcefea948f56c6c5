import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { readProject } from "../../../src/rollout/compose/project.ts";
import { refuseChangedNetworks } from "../../../src/rollout/compose/refuse-changed-networks.ts";
import type { Engine } from "../../../src/rollout/engine/engine.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { temporaryDirectory, writeScript } from "../../harness/temporary.ts";

const model = {
  name: "n1",
  services: {
    app: { image: "app", networks: { default: null } },
    db: { image: "postgres:18", networks: { default: null, back: null }, container_name: "db" },
  },
  networks: { default: { name: "n1_default", ipam: {} }, back: { name: "n1_back" } },
};
/** What compose 2.40.3 wrote on the network of such a model. */
const hash = "f1f4e4a4415e89ff677f3e7b75067f7601d22dc1fda8c3d45a0bcf2b6a384de7";
const removed = " DRY-RUN MODE -  Network n1_default  Removed ";

test("a network with the hash of what the file says is right, without asking compose", async (t) => {
  const { refuse, wasAsked } = project(t, { n1_default: hash }, removed);
  await refuse();
  assert.equal(wasAsked(), false);
});

test("one without a hash was made by a compose that never makes it anew", async (t) => {
  const { refuse, wasAsked } = project(t, { n1_default: undefined }, removed);
  await refuse();
  assert.equal(wasAsked(), false);
});

test("one that compose would make anew is refused with what to do", async (t) => {
  const { refuse } = project(t, { n1_default: "other" }, removed);
  const told =
    /^The network n1_default has to be made anew, .*: docker compose up -d\. Nothing was changed\.$/;
  await assert.rejects(refuse(), isProblem("network_changed", told));
});

test("one of which compose would only make another hash is left alone", async (t) => {
  const { refuse, wasAsked } = project(
    t,
    { n1_default: "other" },
    " DRY-RUN MODE -  Container n1-app-2  Created ",
  );
  await refuse();
  assert.equal(wasAsked(), true);
});

test("one that only services have which are recreated is left to compose", async (t) => {
  const { refuse, wasAsked } = project(t, { n1_back: "other" }, " DRY-RUN MODE -  Network n1_back  Removed ");
  await refuse();
  assert.equal(wasAsked(), false);
});

/** A docker that says what an `up` would do, which the real one says of real networks: test/e2e/rollout-services.test.ts. */
function project(t: TestContext, hashes: Readonly<Record<string, string | undefined>>, says: string) {
  const directory = temporaryDirectory(t);
  const askedPath = join(directory, "asked");
  writeScript(join(directory, "docker"), `#!/bin/sh\ntouch ${askedPath}\necho '${says}' >&2\n`);
  const networks = Object.entries(hashes).map(([Name, value]) => ({
    Name,
    Labels: value === undefined ? null : { "com.docker.compose.config-hash": value },
  }));
  const none = async () => Buffer.alloc(0);
  const engine: Engine = { get: async () => Buffer.from(JSON.stringify(networks)), post: none, delete: none };
  const surroundings = {
    env: { PATH: [directory, process.env.PATH].join(delimiter) },
    signal: new AbortController().signal,
    target: { projectDirectory: directory, files: [] },
    lockDescriptor: undefined,
  };
  return {
    refuse: () => refuseChangedNetworks(engine, surroundings, model, readProject(model)),
    wasAsked: () => existsSync(askedPath),
  };
}
