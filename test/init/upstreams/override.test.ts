import assert from "node:assert/strict";
import { test } from "node:test";
import { overrideText, writersIn } from "../../../src/init/upstreams/override.ts";
import { planUpstreams } from "../../../src/init/upstreams/plan.ts";
import { corpus, corpusOptions } from "../corpus.ts";

function override(name: string): string {
  const { services } = corpus.find((one) => one.name === name) ?? assert.fail(name);
  return overrideText("shop", planUpstreams(services, corpusOptions)).replace(/^#.*\n/gm, "");
}

test("a service loses its ports, and joins Caddy's network", () => {
  assert.equal(
    override("immich"),
    `services:
  immich-server:
    ports: !reset [] # Caddy takes the requests.
    networks:
      default:
      hotpush-shop:
        aliases: [immich-server.shop.containers.internal]

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
