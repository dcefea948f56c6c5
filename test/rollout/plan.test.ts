import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "../../src/rollout/compose/project.ts";
import type { Container } from "../../src/rollout/engine/container.ts";
import { type Action, planService } from "../../src/rollout/plan.ts";
import { sampleContainer, sampleService } from "./sample.ts";

const upToDate = { imageId: "sha256:1", configHashes: ["hash"] };
const recreate = { how: "recreate", reason: "publishes port 80" } as const;
const once = { how: "run-once" } as const;
const byLabel = { replacement: { how: "roll", isByLabel: true } } as const;
const anonymous = [{ type: "volume", name: "a".repeat(64), source: "", target: "/data" }];
const named = [{ type: "volume", name: "shop_data", source: "", target: "/data" }];
const exited = { status: "exited", health: null } as const;

const cases: readonly (readonly [string, Partial<Service>, readonly Partial<Container>[], Action["kind"]])[] =
  [
    ["nothing runs", {}, [], "start"],
    ["the only container has ended", {}, [exited], "start"],
    ["the image and the configuration are the same", {}, [{}], "leave"],
    ["the image is another one", {}, [{ image: "sha256:0" }], "roll"],
    ["the configuration is another one", {}, [{ configHash: "other" }], "roll"],
    ["all is the same, but unhealthy", {}, [{ health: "unhealthy" }], "roll"],
    ["there is one replica too few", { replicas: 2 }, [{}], "roll"],
    ["there is one replica too many", { replicas: 1 }, [{ number: 1 }, { number: 2 }], "roll"],
    [
      "one of two replicas is old",
      { replicas: 2 },
      [{ number: 1 }, { number: 2, image: "sha256:0" }],
      "roll",
    ],
    [
      "the image is another one, but a volume has no name",
      {},
      [{ image: "sha256:0", mounts: anonymous }],
      "recreate",
    ],
    ["it is unhealthy, but a volume has no name", {}, [{ health: "unhealthy", mounts: anonymous }], "leave"],
    [
      "the image is another one and a volume has no name, but a label says how",
      byLabel,
      [{ image: "sha256:0", mounts: anonymous }],
      "roll",
    ],
    [
      "the image is another one, and the volume has a name",
      {},
      [{ image: "sha256:0", mounts: named }],
      "roll",
    ],
    ["two cannot run, and all is the same", { replacement: recreate }, [{}], "leave"],
    [
      "two cannot run, and the image is another one",
      { replacement: recreate },
      [{ image: "sha256:0" }],
      "recreate",
    ],
    ["two cannot run, and none runs", { replacement: recreate }, [], "recreate"],
    ["the migration never ran", { replacement: once }, [], "run"],
    ["the migration ended well", { replacement: once }, [exited], "leave"],
    ["the migration failed", { replacement: once }, [{ ...exited, exitCode: 1 }], "run"],
    [
      "the migration that ended is of another image",
      { replacement: once },
      [{ ...exited, image: "sha256:0" }],
      "run",
    ],
  ];

for (const [situation, service, containers, kind] of cases) {
  test(`where ${situation}, the plan is to ${kind} the service`, () => {
    const found = containers.map((container) => sampleContainer(container));
    assert.equal(planService(sampleService(service), found, upToDate).kind, kind);
  });
}

test("an image that is not here yet counts as another one", () => {
  assert.equal(
    planService(sampleService(), [sampleContainer()], { ...upToDate, imageId: null }).kind,
    "roll",
  );
});
