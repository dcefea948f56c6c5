import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../src/platform/docker/containers.ts";
import { type Action, planService } from "../../src/rollout/plan.ts";
import type { RolloutService } from "../../src/rollout/project.ts";
import { sampleContainer, sampleService } from "./sample.ts";

const upToDate = { imageId: "sha256:1", configHashes: ["hash"] };
const recreate = { how: "recreate", reason: "publishes port 80" } as const;
const once = { how: "run-once" } as const;
const byLabel = { replacement: { how: "roll", isByLabel: true } } as const;
const anonymous = [{ type: "volume", name: "a".repeat(64), source: "", target: "/data" }];
const named = [{ type: "volume", name: "shop_data", source: "", target: "/data" }];
const exited = { status: "exited", health: null } as const;
type Past = Parameters<typeof planService>[0];
const good = { commit: "1".repeat(40), finishedAt: "", images: {} };
const nothingRan = { version: null, current: good, commit: "2".repeat(40) };

const cases: readonly (readonly [
  string,
  Partial<RolloutService>,
  readonly Partial<Container>[],
  Action["kind"],
])[] = [
  ["nothing runs", {}, [], "start"],
  ["the only container has ended", {}, [exited], "start"],
  ["the image and the configuration are the same", {}, [{}], "leave"],
  ["the image is another one", {}, [{ image: "sha256:0" }], "roll"],
  ["the configuration is another one", {}, [{ configHash: "other" }], "roll"],
  ["all is the same, but unhealthy", {}, [{ health: "unhealthy" }], "roll"],
  ["there is one replica too few", { replicas: 2 }, [{}], "roll"],
  ["there is one replica too many", { replicas: 1 }, [{ number: 1 }, { number: 2 }], "roll"],
  ["one of two replicas is old", { replicas: 2 }, [{ number: 1 }, { number: 2, image: "sha256:0" }], "roll"],
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
  ["the image is another one, and the volume has a name", {}, [{ image: "sha256:0", mounts: named }], "roll"],
  ["two cannot run, and all is the same", { replacement: recreate }, [{}], "leave"],
  [
    "two cannot run, and the image is another one",
    { replacement: recreate },
    [{ image: "sha256:0" }],
    "recreate",
  ],
  ["two cannot run, and none runs", { replacement: recreate }, [], "recreate"],
  ["the migration never ran", { replacement: once }, [], "run"],
];

for (const [situation, service, containers, kind] of cases) {
  test(`if ${situation}, the plan is to ${kind} the service`, () => {
    const found = containers.map((container) => sampleContainer(container));
    assert.equal(planService({ ...nothingRan, service: sampleService(service) }, found, upToDate).kind, kind);
  });
}

test("an image that is not here yet counts as another one", () => {
  assert.equal(
    planService({ ...nothingRan, service: sampleService() }, [sampleContainer()], {
      ...upToDate,
      imageId: null,
    }).kind,
    "roll",
  );
});

const migration = sampleService({ replacement: once });
const seed = sampleService({ mayEnd: true });
const ranBefore = { ...nothingRan, current: { ...good, ran: ["app"] } };
const ranNow = { ...ranBefore, commit: good.commit.slice(0, 12) };
const rollBack = { ...ranBefore, version: good };

const oneShots: readonly (readonly [
  string,
  RolloutService,
  Partial<Container>,
  Omit<Past, "service">,
  Action["kind"],
])[] = [
  ["a migration that succeeded at another commit is run", migration, exited, ranBefore, "run"],
  ["a migration that succeeded at this commit is left", migration, exited, ranNow, "leave"],
  ["a migration that failed is run", migration, { ...exited, exitCode: 1 }, ranNow, "run"],
  ["a migration of another image is run", migration, { ...exited, image: "sha256:0" }, ranNow, "run"],
  ["a migration is skipped in a roll back", migration, { ...exited, image: "sha256:0" }, rollBack, "skip"],
  [
    "a migration that failed is skipped in a roll back",
    migration,
    { ...exited, exitCode: 1 },
    rollBack,
    "skip",
  ],
  ["a seed that succeeded at another commit is started", seed, exited, ranBefore, "start"],
  ["a seed that succeeded at this commit is left", seed, exited, ranNow, "leave"],
  ["a seed of another configuration is started", seed, { ...exited, configHash: "other" }, ranNow, "start"],
  ["a seed is skipped in a roll back", seed, { ...exited, image: "sha256:0" }, rollBack, "skip"],
  ["a server that somebody stopped is started", seed, exited, nothingRan, "start"],
];

for (const [claim, service, container, past, kind] of oneShots) {
  test(claim, () => {
    assert.equal(planService({ ...past, service }, [sampleContainer(container)], upToDate).kind, kind);
  });
}
