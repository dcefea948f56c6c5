import { after, before, test } from "node:test";
import { onOwnEngine } from "../lab/on-engine.ts";
import { makeServer, type ServedProject, type Server } from "../lab/server.ts";

// The engine has only one server, and the tests kill the engine.
onOwnEngine("alone", "the networks of a server after a reboot or a prune", (env, engine) => {
  let server: Server;
  let shop: ServedProject;

  before(async () => {
    server = await makeServer(env);
    shop = await server.setUp("shop");
  });
  after(async () => {
    await engine.start();
    await server?.remove();
  });

  test("everything is served again after a reboot", async () => {
    const ids = (await server.docker("ps", "--quiet")).split("\n");
    const pids = (await server.docker("inspect", ...ids, "--format", "{{.State.Pid}}"))
      .split("\n")
      .map(Number);
    await engine.kill();
    // One that is just restarting has none.
    for (const pid of pids.filter((one) => one > 0)) process.kill(pid, "SIGKILL");
    await engine.start();
    await server.untilJoined(["shop"]);
    await shop.untilServed();
  });

  test("one command repairs what a network prune removed while all was stopped", async () => {
    await server.compose("stop", "--timeout", "1");
    await shop.compose("stop", "--timeout", "1");
    await server.docker("network", "prune", "--force");
    await server.compose("up", "--detach", "--wait", "--force-recreate");
    await server.untilJoined(["shop"]);
    await shop.compose("up", "--detach", "--force-recreate");
    await shop.untilServed();
  });
});
