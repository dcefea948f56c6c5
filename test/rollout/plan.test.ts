import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../src/platform/docker/containers.ts";
import type { RolloutService } from "../../src/rollout/project.ts";
import { type Action, planService } from "../../src/rollout/project.ts";
import { sampleContainer, sampleService } from "./sample.ts";

const upToDate = { imageId: "sha256:1", configHash: "hash" };
const recreate = { how: "recreate", reason: "publishes port 80" } as const;
const once = { how: "run-once" } as const;
const byLabel = { replacement: { how: "roll", isByLabel: true } } as const;
const anonymous = [{ type: "volume", name: "a".repeat(64), source: "", target: "/data" }];
const named = [{ type: "volume", name: "shop_data", source: "", target: "/data" }];
const exited = { status: "exited", health: null } as const;
type Past = Parameters<typeof planService>[0];
const good = { commit: "1".repeat(40), finishedAt: "", images: {} };
const nothingRan = { version: null, current: good, commit: "2".repeat(40) };

type Case = readonly [
  kind: Action["kind"],
  containers: readonly Partial<Container>[],
  service?: Partial<RolloutService>,
  past?: Omit<Past, "service">,
];

function assertPlans(cases: readonly Case[]): void {
  for (const [kind, containers, service = {}, past = nothingRan] of cases) {
    const found = containers.map((container) => sampleContainer(container));
    const planned = planService({ ...past, service: sampleService(service) }, found, upToDate);
    assert.equal(planned.kind, kind, JSON.stringify([service, containers]));
  }
}

const image = { image: "sha256:0" };
const single = { replacement: recreate };

test("a service is left if its containers are complete, current and well; else replaced", () => {
  assertPlans([
    ["start", []],
    ["start", [exited]],
    ["leave", [{}]],
    ["roll", [image]],
    ["roll", [{ configHash: "other" }]],
    ["roll", [{ health: "unhealthy" }]],
    ["roll", [{}], { replicas: 2 }],
    ["roll", [{ number: 1 }, { number: 2 }]],
    ["roll", [{ number: 1 }, { number: 2, ...image }], { replicas: 2 }],
    ["leave", [{}], single],
    ["recreate", [image], single],
    ["recreate", [], single],
  ]);
  const missing = planService({ ...nothingRan, service: sampleService() }, [sampleContainer()], {
    ...upToDate,
    imageId: null,
  });
  assert.equal(missing.kind, "roll", "an image that is not here yet counts as another one");
});

test("an only container with an anonymous volume is recreated, unless a label says how", () => {
  assertPlans([
    ["recreate", [{ ...image, mounts: anonymous }]],
    ["leave", [{ health: "unhealthy", mounts: anonymous }]],
    ["roll", [{ ...image, mounts: anonymous }], byLabel],
    ["roll", [{ ...image, mounts: named }]],
  ]);
});

test("a one-shot service runs once for each commit, and not in a roll back", () => {
  const migration = { replacement: once };
  const seed = { mayEnd: true };
  const ranBefore = { ...nothingRan, current: { ...good, ran: ["app"] } };
  const ranNow = { ...ranBefore, commit: good.commit.slice(0, 12) };
  const rollBack = { ...ranBefore, version: good };
  const failed = { ...exited, exitCode: 1 };
  assertPlans([
    ["run", [], migration],
    ["run", [exited], migration, ranBefore],
    ["leave", [exited], migration, ranNow],
    ["run", [failed], migration, ranNow],
    ["run", [{ ...exited, ...image }], migration, ranNow],
    ["skip", [{ ...exited, ...image }], migration, rollBack],
    ["skip", [failed], migration, rollBack],
    ["start", [exited], seed, ranBefore],
    ["leave", [exited], seed, ranNow],
    ["start", [{ ...exited, configHash: "other" }], seed, ranNow],
    ["skip", [{ ...exited, ...image }], seed, rollBack],
    ["start", [exited], seed, nothingRan],
  ]);
});
