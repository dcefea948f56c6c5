import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type ComposeService, composeHash, serviceHashes } from "../../src/platform/compose.ts";

// As compose 2.40.3 prints a service, and the hash that it gives for it.
const service: ComposeService & object = {
  command: ["sh", "-c", "echo $$HOME <b> & sleep 99"],
  configs: [{ source: "motd" }, { source: "env" }, { source: "file" }],
  deploy: { replicas: 2, resources: {}, placement: {} },
  entrypoint: null,
  environment: { A: "1", B: null },
  image: "alpine",
  mem_limit: "536870912",
  networks: { default: null },
  secrets: [{ source: "s", target: "/run/secrets/s" }],
  volumes: [
    {
      type: "bind",
      source: "/tmp/gt/p/app.conf",
      target: "/etc/app.conf",
      read_only: true,
      bind: { create_host_path: true },
    },
    { type: "volume", source: "data", target: "/data", volume: {} },
    { type: "bind", source: "/tmp/gt/p/src", target: "/src" },
  ],
} as object;
const hash = "85041b5247622c2b4a97edeedccb64786f14ad2f3a384543de61153e2cc92c10";

test("a service has the hash that compose gives it, whatever is built, pulled or depended on", () => {
  const other = { ...service, build: {}, pull_policy: "always", depends_on: {}, scale: 3 };
  for (const one of [service, other]) assert.ok(serviceHashes(one, new Map()).has(hash));
  assert.ok(!serviceHashes({ ...service, image: "debian" }, new Map()).has(hash));
});

test("compose 2 and compose 5 hash a short bind mount differently, and both count", () => {
  const withBind = (bind: object) => ({ volumes: [{ type: "bind", source: "/a", target: "/b", bind }] });
  const [two, five] = [withBind({ create_host_path: true }), withBind({})];
  for (const one of [two, five])
    for (const other of [two, five]) assert.ok(serviceHashes(one, new Map()).has(composeHash(other)));
});

test("a service that is bound to another one has the hash of that one's container", () => {
  const bound = { pid: "service:app", volumes_from: ["app:ro"] };
  const hashes = serviceHashes(bound, new Map([["app", "1a2b"]]));
  assert.ok(hashes.has(composeHash({ pid: "container:1a2b", volumes_from: ["1a2b"] })));
  assert.ok(!hashes.has(composeHash(bound)));
});

test("a container that compose did not create is hashed by its name", () => {
  const hashes = serviceHashes({ volumes_from: ["container:abc:ro"] }, new Map());
  assert.ok(hashes.has(composeHash({ volumes_from: ["abc"] })));
});

test("numbers as keys are hashed in the order of texts, as Go writes them", () => {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const labels = { "9": "a", "10": "b", "!": "c" };
  assert.equal(composeHash({ z: 1, labels }), sha256('{"z":1,"labels":{"!":"c","10":"b","9":"a"}}'));
});
