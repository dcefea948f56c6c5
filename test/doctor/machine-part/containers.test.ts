import assert from "node:assert/strict";
import { test } from "node:test";
import { resultOf } from "../../../src/doctor/check.ts";
import { checkMachineContainers, checkMachineVersion } from "../../../src/doctor/machine-part/containers.ts";
import type { MachineContainer } from "../../../src/doctor/machine-part/probe-machine-part.ts";
import { readVersion } from "../../../src/version.ts";
import { machineContainer } from "../../harness/machine-container.ts";

const good = {
  caddy: machineContainer("caddy", { image: "caddy:2" }),
  receive: machineContainer("receive"),
  run: machineContainer("run"),
};

function contextWith(containers: Readonly<Record<string, MachineContainer>> | null) {
  const machineContainers = async () => containers && new Map(Object.entries(containers));
  return { machineContainers, machinePart: null };
}

async function faultsOf(containers: Readonly<Record<string, MachineContainer>>) {
  const result = resultOf(await checkMachineContainers(contextWith(containers)));
  return result.outcome === "faulty" ? result.faults.map(({ text }) => text) : [];
}

test("three running containers with a restart policy are right", async () => {
  assert.deepEqual(await faultsOf(good), []);
});

test("a container that is missing, stopped or unhealthy is a problem", async () => {
  const { run: _, ...without } = good;
  assert.deepEqual(await faultsOf(without), ["run does not run (no container)."]);
  const stopped = { ...good, receive: machineContainer("receive", { status: "exited" }) };
  assert.deepEqual(await faultsOf(stopped), ["receive does not run (exited)."]);
  const sick = { ...good, run: machineContainer("run", { health: "unhealthy" }) };
  assert.deepEqual(await faultsOf(sick), ["run runs, but is not healthy. Its log says why:"]);
});

test("a container that a reboot leaves stopped is a problem", async () => {
  const text = "caddy does not start again after a reboot (its restart policy is no).";
  const { caddy: _, ...rest } = good;
  assert.deepEqual(await faultsOf({ caddy: machineContainer("caddy", { restart: "no" }), ...rest }), [text]);
});

test("without Docker the containers are not judged", async () => {
  assert.equal(resultOf(await checkMachineContainers(contextWith(null))).outcome, "skipped");
});

test("containers of another version than the installed one are a warning", async () => {
  const version = async (containers: Readonly<Record<string, MachineContainer>>) => {
    const result = resultOf(await checkMachineVersion(contextWith(containers)));
    return result.outcome === "faulty" ? result.faults[0]?.text : result.outcome;
  };
  assert.equal(await version(good), "ok");
  const old = { image: "hotpush:0.0.1" };
  assert.equal(
    await version({ ...good, receive: machineContainer("receive", old), run: machineContainer("run", old) }),
    `The machine part runs 0.0.1; this is ${readVersion()}.`,
  );
  assert.equal(
    await version({ ...good, run: machineContainer("run", old) }),
    `receive runs hotpush:${readVersion()}, and run hotpush:0.0.1.`,
  );
});
