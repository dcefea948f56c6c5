import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { recreateService } from "../../src/rollout/recreate-service.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { engineWith, sampleContainer, sampleRollout, sampleService } from "./sample.ts";

test("an old container that was not replaced serves if its health check passes, though Docker has not run it yet", async (t) => {
  for (const [exitCode, outcome] of [
    [0, /not touched and serves/],
    [1, /not replaced, and is not healthy/],
  ] as const) {
    const directory = temporaryDirectory(t);
    writeScript(join(directory, "docker"), "#!/bin/sh\nexit 1\n");
    const env = { PATH: [directory, process.env.PATH].join(delimiter) };
    const inspected = {
      Id: "id-1",
      Name: "/shop-app-1",
      State: { Status: "running", Health: { Status: "starting" } },
      Config: { Hostname: "app", Labels: {}, Healthcheck: { Test: ["CMD", "true"] } },
      HostConfig: { NetworkMode: "none" },
      NetworkSettings: { Networks: {} },
    };
    const reading = engineWith((path) => {
      if (path.startsWith("/exec/")) return { ExitCode: exitCode };
      return path.includes("/json?") ? [{ Id: "id-1" }] : inspected;
    });
    const engine = { ...reading, post: async () => Buffer.from('{"Id":"exec"}') };
    const events: RolloutEvent[] = [];
    const report = (event: RolloutEvent) => events.push(event);
    const on = { ...sampleRollout(directory), engine, env, report, directedBy: null };
    await assert.rejects(
      recreateService({ ...on, service: sampleService() }, [sampleContainer()], { reason: "test" }),
      isProblem("container_start_failed"),
    );
    const last = events.at(-1);
    assert.match(last?.event === "step" ? last.detail : "", outcome);
  }
});
