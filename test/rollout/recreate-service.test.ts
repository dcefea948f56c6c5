import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../src/platform/docker/engine.ts";
import type { ServiceRollout } from "../../src/rollout/context.ts";
import { undoRecreation } from "../../src/rollout/recreate-service.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { sampleContainer, sampleRollout, sampleService } from "./sample.ts";

test("asked to stop while the old version starts again, a roll-out says so, and what it leaves", async () => {
  const events: RolloutEvent[] = [];
  const stopping = new AbortController();
  const on = {
    ...sampleRollout("/srv/shop", {
      engine: startingEngine(stopping),
      signal: stopping.signal,
      report: (event) => events.push(event),
    }),
    service: sampleService(),
  } as unknown as ServiceRollout;
  const spec = { id: "id-1", name: "shop-app-1", image: "", imageName: "", request: {} };
  await undoRecreation(on, { containers: [sampleContainer()], specs: [spec] }, () => 0);
  const [event] = events;
  assert.equal(
    event?.event === "step" && event.detail,
    "the old version could not be brought back: the roll-out was asked to stop; shop-app-1 runs, but is not healthy",
  );
});

/** An engine whose only container was stopped; `stopping` is aborted as soon as it starts again. */
function startingEngine(stopping: AbortController): Engine {
  let status = "exited";
  const container = () => ({
    Id: "id-1",
    Name: "/shop-app-1",
    RestartCount: 0,
    Config: { Labels: {} },
    State: { Status: status, ExitCode: 0, Health: { Status: "starting", Log: [] } },
  });
  return {
    get: async (path) => Buffer.from(JSON.stringify(path.includes("all=1") ? [container()] : container())),
    post: async () => {
      status = "running";
      stopping.abort();
      return Buffer.alloc(0);
    },
    delete: async () => Buffer.alloc(0),
  };
}
