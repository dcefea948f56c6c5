import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { isInContainer } from "../../src/platform/docker/mounts.ts";
import {
  type DoctorFault,
  makePlace,
  type Place,
  placeEnvironment,
  probe,
  runCommand,
  runInShell,
  setSettings,
  standInForDocker,
  testBroken,
} from "../harness/doctor.ts";
import { listenHere } from "../harness/listen.ts";
import { inOwnEtc } from "../harness/mounts.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const onMachine = isInContainer() ? { skip: "a container has no systemd" } : needs("mount");

const portOf = (port: number) => ({ WEBHOOK_PORT: String(port) });

testBroken([
  {
    name: "another program has it",
    check: "running",
    breakIt: async (place, t) =>
      setSettings(
        place,
        portOf(
          await listenHere(
            t,
            createServer((_, response) => response.end("hello")),
          ),
        ),
      ),
    // Nothing listens at the port that it sets.
    async fix(place, fault, t) {
      await runCommand(place, fault);
      await startInForeground(place, (await probe(place, "running")).faults[0], t);
    },
  },
  {
    name: "nothing listens",
    check: "running",
    breakIt: () => {},
    fix: startInForeground,
  },
]);

const bin = join(import.meta.dirname, "../../bin");

/** It stays in the foreground: for as long as the test lasts. */
async function startInForeground(
  place: Place,
  fault: DoctorFault | undefined,
  t: TestContext,
): Promise<void> {
  const env = placeEnvironment(place);
  const child = spawn("sh", ["-c", fault?.command ?? "false"], { env, detached: true });
  const { pid } = child;
  assert.ok(pid);
  t.after(() => process.kill(-pid, "SIGKILL"));
  await until("the service runs", async () => (await probe(place, "running")).outcome === "ok");
}

test("running, state-directory: on the host, skipped for a service in a container", async (t) => {
  const place = makePlace(t);
  const model = { name: "shop", services: { hotpush: { restart: "always" } } };
  const options = standInForDocker(place, { composeVersion: "2.40.3", model });
  for (const id of ["running", "state-directory"])
    assert.equal((await probe(place, id, options)).outcome, "skipped", id);
});

test("running: a service with an earlier secret is found, and fixed by a restart", async (t) => {
  const place = makePlace(t);
  const env = { WEBHOOK_SECRET: "the secret of before, long enough" };
  const service = await startService(t, { repoPath: place.repoPath, env });
  setSettings(place, portOf(service.port));
  const [fault] = (await probe(place, "running")).faults;
  // The one that runs has to end first, as a unit or compose would end it.
  await service.end();
  await startInForeground(place, fault, t);
});

test("queue: a paused queue is found, and its command resumes it", async (t) => {
  const place = makePlace(t);
  await startService(t, { repoPath: place.repoPath, statePath: place.statePath });
  const hotpush = (command: string) =>
    runInShell(place, `STATE_PATH=${place.statePath} ${command.replace("hotpush", join(bin, "hotpush"))}`);
  assert.equal((await probe(place, "queue")).outcome, "ok");
  assert.equal((await hotpush("hotpush pause")).exitCode, 0);
  const [fault] = (await probe(place, "queue")).faults;
  assert.deepEqual([fault?.severity, fault?.command], ["warning", "hotpush resume"]);
  const resumed = await hotpush(fault?.command ?? "false");
  assert.equal(resumed.exitCode, 0, resumed.stderr);
  assert.equal((await probe(place, "queue")).outcome, "ok");
});

test("restart: a missing unit is found and fixed", onMachine, async (t) => {
  const place = makePlace(t);
  const found = await probe(place, "restart");
  const after = await probe(place, "restart", {
    wrapper: inOwnEtc(t, [found.faults[0]?.command ?? "false"]),
  });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
});

test("restart: a unit that is not enabled is found and fixed", onMachine, async (t) => {
  const place = makePlace(t);
  const unit = join(import.meta.dirname, "../../examples/systemd/hotpush.service");
  const install = `cp ${unit} /etc/systemd/system/hotpush.service`;
  const found = await probe(place, "restart", { wrapper: inOwnEtc(t, [install]) });
  assert.equal(found.faults[0]?.command, "systemctl enable hotpush");
  const after = await probe(place, "restart", {
    wrapper: inOwnEtc(t, [install, found.faults[0]?.command ?? ""]),
  });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
});
