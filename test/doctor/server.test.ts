import assert from "node:assert/strict";
import { test } from "node:test";
import { serverFilesAt, serverStateAt } from "../../src/config/server.ts";
import { makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { checks, runChecks } from "../../src/doctor/examine.ts";
import type { ServerContainer } from "../../src/doctor/probes.ts";
import { readVersion } from "../../src/version.ts";

const server = { files: serverFilesAt("/etc/hotpush"), state: serverStateAt("/srv/state"), env: {} };

/** A container as the engine describes it: without `facts`, one that is right. */
function container(service: string, facts: Partial<ServerContainer> = {}): ServerContainer {
  return {
    Name: `/hotpush-${service}-1`,
    Config: { Image: service === "caddy" ? "caddy:2" : `hotpush:${readVersion()}`, User: "", Labels: {} },
    HostConfig: { RestartPolicy: { Name: "unless-stopped" } },
    State: { Status: "running", Health: { Status: "healthy" } },
    lastLines: [],
    ...facts,
  };
}

type Containers = Readonly<Record<string, ServerContainer>>;
const good: Containers = { caddy: container("caddy"), front: container("front"), run: container("run") };

async function check(found: Containers | null) {
  const containers = async () => found && new Map(Object.entries(found));
  const context = { ...makeDoctorContext(readSettings({}, "/none"), null), server, containers };
  const [report] = await runChecks(
    context,
    checks.filter(({ id }) => id === "containers"),
  );
  return report?.result ?? assert.fail();
}

async function faultsOf(found: Containers) {
  const result = await check(found);
  const faults = result.outcome === "faulty" ? result.faults : [];
  return faults.map(({ severity, text, command }) => [severity, text.split(" ")[0], command]);
}

const up = "docker compose --project-directory /etc/hotpush up --detach --wait";

test("containers: those that run, are healthy and come back are right", async () => {
  assert.deepEqual(await faultsOf(good), []);
  assert.equal((await check(null)).outcome, "skipped");
});

test("containers: one that is missing, stopped or unhealthy is a problem, started by its command", async () => {
  const { run: _, ...without } = good;
  assert.deepEqual(await faultsOf(without), [["problem", "run", up]]);
  const stopped = container("front", { State: { Status: "exited" } });
  assert.deepEqual(await faultsOf({ ...good, front: stopped }), [["problem", "front", up]]);
  const sick = container("run", { State: { Status: "running", Health: { Status: "unhealthy" } } });
  assert.deepEqual(await faultsOf({ ...good, run: sick }), [["problem", "run", up]]);
});

test("containers: one that ends for ever is reported with its last lines", async () => {
  const lastLines = ["EACCES: permission denied, mkdir '/var/lib/hotpush/front'"];
  const front = container("front", { State: { Status: "restarting" }, lastLines });
  const result = await check({ ...good, front });
  assert.ok(result.outcome === "faulty");
  assert.ok(result.faults[0]?.text.includes(lastLines[0] ?? "none"), result.faults[0]?.text);
});

test("containers: one that a reboot leaves stopped is a problem", async () => {
  const caddy = container("caddy", { HostConfig: { RestartPolicy: { Name: "no" } } });
  const update = "docker update --restart unless-stopped hotpush-caddy-1";
  assert.deepEqual(await faultsOf({ ...good, caddy }), [["problem", "caddy", update]]);
});

test("containers: those of another version than the installed one are a warning", async () => {
  const Config = { Image: "hotpush:0.0.1", User: "", Labels: {} };
  const upgrade = [["warning", "hotpush:0.0.1", "hotpush upgrade"]];
  assert.deepEqual(await faultsOf({ ...good, run: container("run", { Config }) }), upgrade);
});
