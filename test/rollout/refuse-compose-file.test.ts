import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { type Network, readProject } from "../../src/rollout/project.ts";
import { refuseChangedNetworks, refuseOtherHome } from "../../src/rollout/refuse-compose-file.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { sampleContainer, sampleService } from "./sample.ts";

/** What compose 2.40.3 wrote on the network of such a definition. */
const hash = "f1f4e4a4415e89ff677f3e7b75067f7601d22dc1fda8c3d45a0bcf2b6a384de7";
const network: Network = { key: "default", name: "n1_default", definition: { name: "n1_default", ipam: {} } };
const stops = " DRY-RUN MODE -  Container n1-app-1  Stopping ";
const creates = " DRY-RUN MODE -  Container n1-app-2  Created ";
const told = /^The network n1_default must be recreated, .*: docker compose down && docker compose up -d\. /;

test("a network that compose would recreate is refused, by a dry run if its hash differs", async (t) => {
  const old = { hash, Name: "n1_old" };
  const present = { hash, Name: network.name };
  const cases: readonly (readonly [
    found: readonly Found[],
    says: string,
    isRefused: boolean,
    isAsked: boolean,
  ])[] = [
    [[{ hash }], stops, false, false],
    [[{ hash: undefined }], stops, false, false],
    [[{ hash: "other" }], stops, true, true],
    [[{ hash: "other" }], creates, false, true],
    [[old], creates, true, false],
    [[old, present], creates, false, false],
  ];
  for (const [found, says, isRefused, isAsked] of cases) {
    const { refuse, wasAsked } = project(t, found, says);
    if (isRefused) await assert.rejects(refuse(), isProblem("network_changed", told));
    else await refuse();
    assert.equal(wasAsked(), isAsked, JSON.stringify([found, says]));
  }
});

test("if the dry run of compose fails, nothing is started", async (t) => {
  const { refuse } = project(t, [{ hash: "other" }], "no such image'; exit 1; echo '");
  await assert.rejects(
    refuse(),
    isProblem("container_start_failed", /^app was not started: .*in a dry run\.$/),
  );
});

test("the networks of a service are those that compose makes, not external ones", () => {
  const services = { app: { networks: { default: null, outer: null } } };
  const networks = {
    default: network.definition as { name: string },
    outer: { name: "outer", external: true },
  };
  const [app] = readProject({ name: "n1", services, networks }).services;
  assert.deepEqual(app?.networks, [network]);
});

interface Found {
  readonly hash: string | undefined;
  readonly Name?: string;
}

/** A docker that says what an `up` would do, which the real one says of real networks: test/e2e/rollout-services.test.ts. */
function project(t: TestContext, found: readonly Found[], says: string) {
  const directory = temporaryDirectory(t);
  const askedPath = join(directory, "asked");
  writeScript(join(directory, "docker"), `#!/bin/sh\ntouch ${askedPath}\necho '${says}' >&2\n`);
  const none = async () => Buffer.alloc(0);
  const get = async () => Buffer.from(JSON.stringify(found.map(listed)));
  const engine: Engine = { get, post: none, delete: none };
  const surroundings = {
    env: { PATH: [directory, process.env.PATH].join(delimiter) },
    signal: new AbortController().signal,
    target: { projectDirectory: directory, files: [] },
    lockDescriptor: undefined,
    project: { name: "n1" },
    engine,
  };
  const service = sampleService({ networks: [network] });
  return {
    refuse: () => refuseChangedNetworks(surroundings, service, ["docker", "compose", "up"]),
    wasAsked: () => existsSync(askedPath),
  };
}

/** As the engine lists it; a label without a value is left out. */
function listed({ hash: value, Name = network.name }: Found) {
  const Labels = { "com.docker.compose.network": "default", "com.docker.compose.config-hash": value };
  return { Name, Labels };
}

const place = { home: "/root", projectDirectory: "/root/shop" };
const target = "/var/lib/postgresql/data";

test("a directory that was in another home is refused, with the line to write", () => {
  const text =
    /^db has \/home\/me\/pgdata at \S+, and by the compose file it would be \/root\/pgdata: .* Write the whole path: \/home\/me\/pgdata:\/var/;
  assert.throws(() => ask("/root/pgdata", "/home/me/pgdata"), isProblem("compose_invalid", text));
});

test("only a directory that lay in another home is another one", () => {
  ask("/root/pgdata", "/root/pgdata");
  ask("/srv/pgdata", "/home/me/pgdata");
  ask("/root/shop/data", "/home/me/shop/data"); // It has moved with the project.
  ask("/root/data-17", "/root/data-16"); // Somebody has chosen it.
  refuseOtherHome(model("/root/pgdata"), place, []);
});

function ask(source: string, there: string): void {
  const mounts = [{ type: "bind", name: "", source: there, target }];
  refuseOtherHome(model(source), place, [sampleContainer({ service: "db", mounts })]);
}

function model(source: string) {
  return { name: "shop", services: { db: { volumes: [{ type: "bind", source, target }] } } };
}
