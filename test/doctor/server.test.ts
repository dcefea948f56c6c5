import assert from "node:assert/strict";
import { test } from "node:test";
import { serverFilesAt, serverStateAt } from "../../src/config/server.ts";
import { makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { checks, runChecks } from "../../src/doctor/examine.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { readVersion } from "../../src/version.ts";

const server = { files: serverFilesAt("/etc/hotpush"), state: serverStateAt("/srv/state"), env: {} };
const up = "docker compose --project-directory /etc/hotpush up --detach --wait";
const healthy = { Status: "running", Health: { Status: "healthy" } };
const sick = { Status: "running", Health: { Status: "unhealthy" } };
const logLine = "EACCES: permission denied, mkdir '/var/lib/hotpush/front'";

/** What differs from three good containers, and the severity, first word and command of each fault. */
const rows: readonly (readonly [
  what: string,
  states: object,
  fault: readonly unknown[] | null,
  image?: string,
])[] = [
  ["that run and are healthy are right", {}, null],
  ["that are missing are created", { run: null }, ["problem", "run", up]],
  ["that have stopped are started", { front: { Status: "exited" } }, ["problem", "front", up]],
  ["that are not healthy are started", { run: sick }, ["problem", "run", up]],
  ["of another version are updated", {}, ["warning", "hotpush:0.0.1", "hotpush upgrade"], "hotpush:0.0.1"],
];

for (const [what, states, fault, image = `hotpush:${readVersion()}`] of rows)
  test(`containers: those ${what}`, async () => {
    const found = await faultsOf({ caddy: healthy, front: healthy, run: healthy, ...states }, image);
    const shown = found.map(({ severity, text, command }) => [severity, text.split(" ")[0], command]);
    assert.deepEqual(shown, fault ? [fault] : []);
    if (fault?.[0] === "problem" && !("run" in states && states.run === null))
      assert.ok(found[0]?.text.includes(logLine), "its last lines say why");
  });

async function faultsOf(states: Readonly<Record<string, object | null>>, image: string) {
  const there = Object.entries(states).filter(([, State]) => State !== null);
  const answers: Readonly<Record<string, unknown>> = Object.fromEntries(
    there.map(([service, State]) => [
      `/containers/${service}/json`,
      {
        Id: service,
        Name: `/hotpush-${service}-1`,
        State,
        Config: {
          Image: service === "caddy" ? "caddy:2" : image,
          Labels: { "com.docker.compose.service": service },
        },
      },
    ]),
  );
  const get = async (path: string) => {
    if (path.includes("/logs?")) return Buffer.from(`${logLine}\n`);
    return Buffer.from(JSON.stringify(answers[path] ?? there.map(([Id]) => ({ Id }))));
  };
  const engine = { kind: "answers", engine: { get } as unknown as Engine } as const;
  const context = {
    ...makeDoctorContext(readSettings({}, "/none"), null, server),
    engine: async () => ({ ...engine, version: "28", apiVersion: "1.51", rootPath: "/none" }),
  };
  const wanted = checks.filter(({ id }) => id === "containers");
  const [report] = await runChecks(context, wanted);
  return report?.result.outcome === "faulty" ? report.result.faults : [];
}
