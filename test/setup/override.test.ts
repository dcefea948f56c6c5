import assert from "node:assert/strict";
import { test } from "node:test";
import { overrideText, writersIn } from "../../src/setup/override.ts";
import { planServed, type ServedOptions } from "../../src/setup/served.ts";
import { noChoices, publicProjects } from "./public-projects.ts";

function override(name: string, writers: ServedOptions["writers"] = {}): string {
  const { services } = publicProjects.find((one) => one.name === name) ?? assert.fail(name);
  return overrideText("shop", planServed(services, { ...noChoices, writers }).changes).replace(
    /^#.*\n/gm,
    "",
  );
}

test("a service of which two may run loses its ports and its name, and joins Caddy's network", () => {
  assert.equal(
    override("immich", { "immich-server": true }),
    `services:
  immich-server:
    ports: !reset [] # Caddy takes the requests.
    networks:
      default:
      hotpush-shop:
        aliases: [immich-server.shop.containers.internal]
    container_name: !reset null # Two containers cannot share it.
    labels:
      hotpush.rollout: live # Two containers may write to its volumes.

networks:
  hotpush-shop:
    external: true
`,
  );
});

test("a service that cannot run twice keeps its name and its other ports", () => {
  assert.equal(
    override("gitea"),
    `services:
  server:
    ports: !override # Caddy takes the requests of the others.
      - "222:22/tcp"
    networks:
      hotpush-shop:
        aliases: [server.shop.containers.internal]

networks:
  hotpush-shop:
    external: true
`,
  );
});

test("a project without upstreams has an override without changes", () => {
  assert.equal(override("minecraft"), "services: {}\n");
});

test("the labels of an override are read, also those that a person wrote", () => {
  assert.deepEqual(
    writersIn("services:\n  a: {labels: {hotpush.rollout: live}}\n  b:\n    ports: !reset []\n"),
    { a: true },
  );
  assert.deepEqual(writersIn(""), {});
});
