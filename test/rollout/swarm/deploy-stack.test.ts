import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import {
  deployCommand,
  deployInput,
  onlyServices,
  pushCommand,
  stackConfigCommand,
} from "../../../src/rollout/swarm/deploy-stack.ts";
import { readStack } from "../../../src/rollout/swarm/stack.ts";

test("the stack is deployed from its files and, over them, from standard input", () => {
  const files = ["stack.yaml", "more.yaml", "-"];
  const images = new Map([["app", "ghcr.io/shop/app:0a1b"]]);
  const argv = deployCommand({ project: { name: "shop", services: [] }, withPull: false }, files, images);
  assert.deepEqual(argv, [
    ...["docker", "stack", "deploy"],
    ...["--compose-file", "stack.yaml", "--compose-file", "more.yaml", "--compose-file", "-"],
    ...["--detach=true", "--with-registry-auth", "--resolve-image=changed", "shop"],
  ]);
});

test("docker stack config gets the same files", () => {
  assert.deepEqual(stackConfigCommand(["stack.yaml", "-"]), [
    ...["docker", "stack", "config", "--compose-file", "stack.yaml", "--compose-file", "-"],
  ]);
});

test("an image is pushed by its name alone", () => {
  assert.deepEqual(pushCommand("ghcr.io/shop/app:0a1b"), ["docker", "push", "ghcr.io/shop/app:0a1b"]);
});

test("the input names images by commit, start-first, but not with a writable volume", () => {
  const data = { type: "volume", source: "data", target: "/data" };
  const { services } = readStack({
    name: "shop",
    services: { app: { image: "shop-app", build: {} }, web: { image: "web" }, db: { volumes: [data] } },
  });
  const startFirst = {
    update_config: { order: "start-first", failure_action: "rollback" },
    rollback_config: { order: "start-first" },
  };
  assert.deepEqual(JSON.parse(deployInput(services, new Map([["app", "shop-app:0a1b"]]))), {
    services: {
      app: { image: "shop-app:0a1b", deploy: startFirst },
      web: { deploy: startFirst },
      db: {},
    },
  });
});

const file = `version: "3.13"
services:
  "123":
    image: a
  app:
    environment:
      MODE: 010
      FLAG: "on"
      NONE: null
      LONG: ${"a long value ".repeat(12)}end
      TEXT: |
        services:
          hotpush:

        volumes:
    image: shop-app
  hotpush:
    image: hotpush
volumes:
  state: {}
`;

/** Newer versions of docker indent by four. */
const indented = file.replace(/^ +/gm, (spaces) => spaces + spaces);

for (const [text, width] of [
  [file, "two"],
  [indented, "four"],
] as const) {
  test(`keeps the named services and everything that is no service (indent ${width})`, async () => {
    const whole = parse(text);
    const { app, hotpush } = whole.services;
    assert.deepEqual(parse(await onlyServices(text, ["app"])), { ...whole, services: { app } });
    const both = parse(await onlyServices(text, ["hotpush", "123"]));
    assert.deepEqual(both, { ...whole, services: { "123": { image: "a" }, hotpush } });
  });
}

test("keeps the text of every value: Docker reads YAML 1.1", async () => {
  const names = ["123", "app", "hotpush"];
  assert.equal(await onlyServices(file, names), file);
  assert.match(await onlyServices(file, ["app"]), /MODE: 010\n {6}FLAG: "on"\n {6}NONE: null\n/);
});

test("all services are the whole file, even if nothing follows them", async () => {
  const short = file.slice(0, file.indexOf("volumes:\n  state"));
  assert.equal(await onlyServices(short, ["123", "app", "hotpush"]), short);
});

test("the error names a service that is missing", async () => {
  await assert.rejects(onlyServices(file, ["app", "web"]), /does not show the service web/);
});
