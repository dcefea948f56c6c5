import assert from "node:assert/strict";
import { test } from "node:test";
import { serverFilesAt, serverStateAt } from "../../src/config/server.ts";
import { makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { checks, runChecks } from "../../src/doctor/examine.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { readVersion } from "../../src/version.ts";

const server = { files: serverFilesAt("/etc/hotpush"), state: serverStateAt("/srv/state"), env: {} };
const up = "docker compose --project-directory /etc/hotpush up --detach --wait";
const installed = `hotpush:${readVersion()}`;

/** The containers that are there, with their image, and the severity, first word and command of each fault. */
for (const [what, services, image, faults] of [
  ["that run the installed version are right", ["caddy", "front", "run"], installed, []],
  ["that are missing are created", ["caddy", "front"], installed, [["problem", "run", up]]],
  [
    "of another version are updated",
    ["caddy", "front", "run"],
    "hotpush:0",
    [["warning", "hotpush:0", "hotpush upgrade"]],
  ],
] as const)
  test(`containers: those ${what}`, async () => {
    const get = async (path: string) => {
      const service = /^\/containers\/(\w+)\/json$/.exec(path)?.[1] ?? "";
      const Config = {
        Image: service === "caddy" ? "caddy:2" : image,
        Labels: { "com.docker.compose.service": service },
      };
      const one = { Id: service, Name: `/hotpush-${service}-1`, State: { Status: "running" }, Config };
      return Buffer.from(JSON.stringify(service === "" ? services.map((Id) => ({ Id })) : one));
    };
    const answers = { kind: "answers", version: "28", apiVersion: "1.51", rootPath: "/none" } as const;
    const engine = async () => ({ ...answers, engine: { get } as unknown as Engine });
    const context = { ...makeDoctorContext(readSettings({}, "/none"), null, server), engine };
    const [report] = await runChecks(
      context,
      checks.filter(({ id }) => id === "containers"),
    );
    const found = report?.result.faults.map(({ severity, text, command }) => [
      severity,
      text.split(" ")[0],
      command,
    ]);
    assert.deepEqual(found, faults);
  });
