import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose/model.ts";
import { replacementOf } from "../../../src/rollout/compose/replacement.ts";

const volume = { type: "volume", source: "data", target: "/app/data" };
const recreated: readonly (readonly [string, ComposeService])[] = [
  ["publishes port 80", { ports: [{ published: "80", target: 80 }] }],
  ["container_name shop", { container_name: "shop" }],
  ["network_mode host", { network_mode: "host" }],
  ["network_mode service:vpn", { network_mode: "service:vpn" }],
  ["fixed address 10.0.0.5", { networks: { default: { ipv4_address: "10.0.0.5" } } }],
  ["label hotpush.rollout=recreate", { labels: { "hotpush.rollout": "recreate" } }],
  ["volume /app/data", { volumes: [volume] }],
  ["volume /data", { volumes: [{ type: "bind", source: "/srv/shop/data", target: "/data" }] }],
  ["volume /app/a.db", { volumes: [{ type: "bind", source: "/srv/a.db", target: "/app/a.db" }] }],
];

for (const [reason, service] of recreated) {
  test(`two cannot run: ${reason}`, () => {
    assert.deepEqual(replacementOf(service, false), { how: "recreate", reason });
  });
}

const bind = (source: string, target: string) => ({ type: "bind", source, target });
const rolled: readonly (readonly [string, ComposeService])[] = [
  ["a service without a volume, whatever its image", { image: "postgres:17" }],
  ["a port that Docker chooses", { ports: [{ target: 80 }] }],
  ["a volume whose label says so", { volumes: [volume], labels: { "hotpush.rollout": "live" } }],
  ["a read-only volume", { volumes: [{ ...volume, read_only: true }] }],
  ["an anonymous volume", { volumes: [{ type: "volume", target: "/data" }] }],
  ["a file of configuration", { volumes: [bind("/srv/a.yml", "/etc/a.yml")] }],
  ["a socket", { volumes: [bind("/var/run/docker.sock", "/docker.sock")] }],
  ["the clock", { volumes: [bind("/etc/localtime", "/etc/localtime")] }],
  ["the live files", { volumes: [{ type: "volume", source: "live", target: "/run/live" }] }],
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
  ["a volume", { volumes: [volume] }],
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
