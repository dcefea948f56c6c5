import assert from "node:assert/strict";
import { test } from "node:test";
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

test("the input names images by commit, start-first, but not for databases", () => {
  const { services } = readStack({
    name: "shop",
    services: { app: { image: "shop-app", build: {} }, web: { image: "web" }, db: { image: "postgres:17" } },
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
  test(`keeps the named services and everything that is no service (indent ${width})`, () => {
    const app = text.slice(
      text.indexOf("\n", text.indexOf("image: a")) + 1,
      text.search(/^ +hotpush:\n +image/m),
    );
    assert.equal(onlyServices(text, ["app"]), `version: "3.13"\nservices:\n${app}volumes:\n${volumes(text)}`);
    const both = onlyServices(text, ["hotpush", "123"]);
    assert.match(both, /^ +"123":\n +image: a\n +hotpush:\n +image: hotpush\nvolumes:/m);
    assert.doesNotMatch(both, /shop-app/);
  });
}

test("all services are the whole file, even if nothing follows them", () => {
  const names = ["123", "app", "hotpush"];
  assert.equal(onlyServices(file, names), file);
  const short = file.slice(0, file.indexOf("volumes:\n  state"));
  assert.equal(onlyServices(short, names), short);
});

test("the error names a service that is missing", () => {
  assert.throws(() => onlyServices(file, ["app", "web"]), /does not show the service web/);
});

function volumes(text: string): string {
  return text.slice(text.lastIndexOf("volumes:\n") + "volumes:\n".length);
}
