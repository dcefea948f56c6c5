import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { serverAt } from "../../src/setup/server.ts";
import { startServices } from "../../src/setup/start.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { engineWith } from "../rollout/sample.ts";

test("a service that is not healthy has failed, though compose ends with 0 at the end of its time", async (t) => {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), "#!/bin/sh\n");
  const env = { SERVER_PATH: directory, PATH: [directory, process.env.PATH].join(delimiter) };
  const start = (health: string) => {
    const container = {
      Id: "front",
      Name: "/hotpush-front-1",
      Config: { Image: "hotpush", Labels: { "com.docker.compose.service": "front" } },
      State: { Status: "running", ExitCode: 0, Health: { Status: health, Log: [] } },
    };
    const engine = engineWith((path) =>
      path.startsWith("/containers/json") ? [{ Id: "front" }] : container,
    );
    return startServices({ server: serverAt(env), engine, env }, ["front"]);
  };
  assert.equal((await start("unhealthy"))?.service, "front");
  assert.equal(await start("healthy"), null);
});
