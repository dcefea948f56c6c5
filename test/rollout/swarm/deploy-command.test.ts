import assert from "node:assert/strict";
import { test } from "node:test";
import {
  deployCommand,
  deployInput,
  pushCommand,
  stackConfigCommand,
} from "../../../src/rollout/swarm/deploy-command.ts";
import { readStack } from "../../../src/rollout/swarm/stack.ts";

test("the stack is deployed from its files and, over them, from standard input", () => {
  const files = ["stack.yaml", "more.yaml", "-"];
  const argv = deployCommand({ stack: "shop", files, resolveImage: "changed" });
  assert.deepEqual(argv, [
    ...["docker", "stack", "deploy"],
    ...["--compose-file", "stack.yaml", "--compose-file", "more.yaml", "--compose-file", "-"],
    ...["--detach=true", "--with-registry-auth", "--resolve-image=changed", "shop"],
  ]);
});

test("the same files are made one", () => {
  assert.deepEqual(stackConfigCommand(["stack.yaml", "-"]), [
    ...["docker", "stack", "config", "--compose-file", "stack.yaml", "--compose-file", "-"],
  ]);
});

test("an image is pushed by its name alone", () => {
  assert.deepEqual(pushCommand("ghcr.io/shop/app:0a1b"), ["docker", "push", "ghcr.io/shop/app:0a1b"]);
});

test("the input names images by commit and starts new tasks first, and leaves databases to the file", () => {
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
