import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeMachine, type Role } from "../harness/machine.ts";
import { until } from "../harness/until.ts";

const program = join(import.meta.dirname, "../../bin/health");

for (const role of ["all", "front", "run"] as const satisfies readonly Role[]) {
  test(`the health check of the image finds out whether ${role} is healthy`, async (t) => {
    const machine = makeMachine(t);
    const { port, statePath, end } = await machine.start(role);
    const split = role === "all" ? {} : { FRONT_SOCKET: join(machine.statePathOf("run"), "front.sock") };
    // Nothing listens at port 1, as in a container of `run`.
    const env = { PATH: process.env.PATH, STATE_PATH: statePath, WEBHOOK_PORT: String(port || 1), ...split };
    const check = () =>
      new Promise((resolve) =>
        execFile(program, { env }, (error) => resolve(error === null ? 0 : error.code)),
      );
    if (role !== "front") await until("the socket", () => existsSync(join(statePath, "control.sock")));
    assert.equal(await check(), 0);
    await end("SIGKILL");
    assert.equal(await check(), 7, "curl is refused");
  });
}
