import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose/model.ts";
import { replacementOf } from "../../../src/rollout/compose/replacement.ts";

const recreated: readonly (readonly [string, ComposeService])[] = [
  ["publishes port 80", { ports: [{ published: "80", target: 80 }] }],
  ["container_name shop", { container_name: "shop" }],
  ["network_mode host", { network_mode: "host" }],
  ["network_mode service:vpn", { network_mode: "service:vpn" }],
  ["fixed address 10.0.0.5", { networks: { default: { ipv4_address: "10.0.0.5" } } }],
  ["label hotpush.rollout=recreate", { labels: { "hotpush.rollout": "recreate" } }],
  ["database postgres:17", { image: "postgres:17" }],
  ["database docker.io/library/redis@sha256:0", { image: "docker.io/library/redis@sha256:0" }],
  ["database ghcr.io/acme/mariadb", { image: "ghcr.io/acme/mariadb" }],
  [
    "data directory /var/lib/mysql",
    { image: "acme/sql", volumes: [{ type: "volume", target: "/var/lib/mysql" }] },
  ],
];

for (const [reason, service] of recreated) {
  test(`two cannot run: ${reason}`, () => {
    assert.deepEqual(replacementOf(service, false), { how: "recreate", reason });
  });
}

const rolled: readonly (readonly [string, ComposeService])[] = [
  ["an app", { image: "shop-app" }],
  ["an app whose name contains a database's", { image: "acme/postgres-backup" }],
  ["a port that Docker chooses", { ports: [{ target: 80 }] }],
  [
    "a database whose label says that two can run",
    { image: "redis:8", labels: { "hotpush.rollout": "live" } },
  ],
  [
    "a volume of its own",
    { image: "app", volumes: [{ type: "volume", source: "uploads", target: "/uploads" }] },
  ],
];

for (const [what, service] of rolled) {
  test(`two can run: ${what}`, () => {
    assert.equal(replacementOf(service, false).how, "roll");
  });
}

test("the label scale is for proxies that watch Docker", () => {
  assert.deepEqual(replacementOf({ labels: { "hotpush.rollout": "scale" } }, false), { how: "scale" });
});

test("no label makes two containers share a port", () => {
  const service = { labels: { "hotpush.rollout": "live" }, ports: [{ published: "80" }] };
  assert.deepEqual(replacementOf(service, false), { how: "recreate", reason: "publishes port 80" });
});

const clashing: readonly (readonly [string, ComposeService])[] = [
  ["a published port", { ports: [{ published: "80", target: 80 }] }],
  ["a container_name", { container_name: "shop-migrate" }],
  ["the host's network", { network_mode: "host" }],
  ["the label recreate", { labels: { "hotpush.rollout": "recreate" } }],
  ["the label live", { labels: { "hotpush.rollout": "live" } }],
  ["a database's image", { image: "postgres:17" }],
];

for (const [what, service] of clashing) {
  test(`a service that others await runs once in spite of ${what}`, () => {
    assert.deepEqual(replacementOf(service, true), { how: "run-once" });
  });
}

test("a misspelt label is refused", () => {
  assert.throws(
    () => replacementOf({ labels: { "hotpush.rollout": "rolling" } }, false),
    /"rolling", not one of live, scale/,
  );
});
