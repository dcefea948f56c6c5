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
    ["the same image and configuration", {}, [{}], "leave"],
    ["another image", {}, [{ image: "sha256:0" }], "roll"],
    ["another configuration", {}, [{ configHash: "other" }], "roll"],
    ["the same, but unhealthy", {}, [{ health: "unhealthy" }], "roll"],
    ["one replica too few", { replicas: 2 }, [{}], "roll"],
    ["one replica too many", { replicas: 1 }, [{ number: 1 }, { number: 2 }], "roll"],
    [
      "two replicas, one of them old",
      { replicas: 2 },
      [{ number: 1 }, { number: 2, image: "sha256:0" }],
      "roll",
    ],
    [
      "another image, with a volume without a name",
      {},
      [{ image: "sha256:0", mounts: anonymous }],
      "recreate",
    ],
    ["unhealthy, with a volume without a name", {}, [{ health: "unhealthy", mounts: anonymous }], "leave"],
    ["the same with a label that says how", byLabel, [{ image: "sha256:0", mounts: anonymous }], "roll"],
    ["another image, with a volume that has a name", {}, [{ image: "sha256:0", mounts: named }], "roll"],
    ["no replicas wanted", { replicas: 0 }, [], "leave"],
    ["two cannot run, the same", { replacement: recreate }, [{}], "leave"],
    ["two cannot run, another image", { replacement: recreate }, [{ image: "sha256:0" }], "recreate"],
    ["two cannot run, none runs", { replacement: recreate }, [], "recreate"],
    ["a migration that never ran", { replacement: once }, [], "run"],
    ["a migration that ended well", { replacement: once }, [exited], "leave"],
    ["a migration that failed", { replacement: once }, [{ ...exited, exitCode: 1 }], "run"],
    ["a migration of another image", { replacement: once }, [{ ...exited, image: "sha256:0" }], "run"],
  ];

for (const [situation, service, containers, kind] of cases) {
  test(`${situation}: ${kind}`, () => {
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
