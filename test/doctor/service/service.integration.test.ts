import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { isInContainer } from "../../../src/platform/docker/mountinfo.ts";
import { standInForDocker } from "../../harness/docker-stand-in.ts";
import {
  makePlace,
  placeEnvironment,
  probe,
  runDoctor,
  runInShell,
  setSettings,
} from "../../harness/doctor.ts";
import { testBroken } from "../../harness/doctor-cases.ts";
import { listenHere } from "../../harness/listen.ts";
import { inOwnEtc } from "../../harness/own-mounts.ts";
import { needs } from "../../harness/requirements.ts";
import { startService } from "../../harness/service.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

const onMachine = isInContainer() ? { skip: "a container has no systemd" } : needs("mount");

const portOf = (port: number) => ({ WEBHOOK_PORT: String(port) });

testBroken([
  {
    name: "another program has it",
    check: "port",
    says: /^Port \d+ is taken by another program/,
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
  },
  {
    name: "an address of another machine",
    check: "port",
    says: /cannot listen on 192\.0\.2\.1:\d+ \(EADDRNOTAVAIL\)/,
    breakIt: (place) => setSettings(place, { WEBHOOK_HOST: "192.0.2.1" }),
  },
  {
    name: "nothing listens",
    check: "running",
    says: /does not answer on port \d+: nobody receives a push/,
    breakIt: () => {},
    async fix(place, { command }, t) {
      // It stays in the foreground: for as long as the test lasts.
      const child = spawn("sh", ["-c", command ?? "false"], { env: placeEnvironment(place), detached: true });
      const { pid } = child;
      assert.ok(pid);
      t.after(() => process.kill(-pid, "SIGKILL"));
      await until("the service runs", async () => (await probe(place, "running")).outcome === "ok");
    },
  },
]);

test("port: on the host, skipped for a service in a container", async (t) => {
  const place = makePlace(t);
  setSettings(place, portOf(await listenHere(t, createServer())));
  const services = { hotpush: { environment: { WEBHOOK_SECRET: "x" } } };
  const options = standInForDocker(place, { composeVersion: "2.40.3", model: { name: "shop", services } });
  assert.equal((await probe(place, "port", options)).outcome, "skipped");
});

test("running, secret-in-use, port, version: pass for a service with the same secret", async (t) => {
  const place = makePlace(t);
  const service = await startService(t, { repoPath: place.repoPath });
  setSettings(place, portOf(service.port));
  for (const id of ["running", "secret-in-use", "port", "version"]) {
    const { outcome, faults } = await probe(place, id);
    assert.deepEqual([outcome, faults], ["ok", []], id);
  }
});

test("secret-in-use: a service with an earlier secret is found, and fixed by a restart", async (t) => {
  const place = makePlace(t);
  const service = await startService(t, {
    repoPath: place.repoPath,
    env: { WEBHOOK_SECRET: "the secret of before, long enough" },
  });
  setSettings(place, portOf(service.port));
  const found = await probe(place, "secret-in-use");
  assert.match(found.faults[0]?.text ?? "", /refuses a ping signed with the secret that is set here/);
  // Its command starts the service; the one that runs has to be ended first, as a unit or compose would.
  await service.end();
  const again = await startService(t, { repoPath: place.repoPath });
  setSettings(place, portOf(again.port));
  assert.equal((await probe(place, "secret-in-use")).outcome, "ok");
});

test("version: files changed after the start are found, and fixed by a restart", async (t) => {
  const place = makePlace(t);
  const checkout = temporaryDirectory(t);
  for (const path of ["src", "bin", "package.json"]) {
    cpSync(join(import.meta.dirname, "../../..", path), join(checkout, path), { recursive: true });
  }
  symlinkSync(join(import.meta.dirname, "../../../node_modules"), join(checkout, "node_modules"));
  const mainPath = join(checkout, "src/main.ts");
  const doctorOf = async () => {
    const { stdout } = await runDoctor(place, { args: ["version", "--json"], mainPath });
    return JSON.parse(stdout).checks[0];
  };
  const service = await startService(t, { repoPath: place.repoPath, mainPath });
  setSettings(place, portOf(service.port));
  await until("the change is seen", async () => {
    writeFileSync(join(checkout, "src/version.txt"), "2");
    return (await doctorOf()).outcome === "faulty";
  });
  const [fault] = (await doctorOf()).faults;
  assert.match(fault.text, /were changed after the service \(process \d+\) was started/);
  assert.equal(fault.command, `kill ${service.child.pid}`);
  await runInShell(place, fault.command);
  if (service.child.exitCode === null) await once(service.child, "exit");
  await until("another one is newer than the change", async () => {
    const again = await startService(t, { repoPath: place.repoPath, mainPath });
    setSettings(place, portOf(again.port));
    if ((await doctorOf()).outcome === "ok") return true;
    await again.end();
    return false;
  });
});

test("version: a service that runs from another directory is found", async (t) => {
  const place = makePlace(t);
  const other = join(temporaryDirectory(t), "src/main.ts");
  cpSync(join(import.meta.dirname, "../../../src"), join(other, ".."), { recursive: true });
  cpSync(join(import.meta.dirname, "../../../package.json"), join(other, "../../package.json"));
  symlinkSync(join(import.meta.dirname, "../../../node_modules"), join(other, "../../node_modules"));
  const service = await startService(t, { repoPath: place.repoPath, mainPath: other });
  setSettings(place, portOf(service.port));
  assert.match((await probe(place, "version")).faults[0]?.text ?? "", /^The service runs from /);
});

test("restart: a missing unit is found and fixed", onMachine, async (t) => {
  const place = makePlace(t);
  const found = await probe(place, "restart");
  assert.match(found.faults[0]?.text ?? "", /^No systemd unit and no compose service/);
  const after = await probe(place, "restart", {
    wrapper: inOwnEtc(t, [found.faults[0]?.command ?? "false"]),
  });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
  assert.equal(after.fact, "the systemd unit is enabled");
});

test("restart: a unit that is not enabled is found and fixed", onMachine, async (t) => {
  const place = makePlace(t);
  const unit = join(import.meta.dirname, "../../../examples/systemd/hotpush.service");
  const install = `cp ${unit} /etc/systemd/system/hotpush.service`;
  const found = await probe(place, "restart", { wrapper: inOwnEtc(t, [install]) });
  assert.equal(found.faults[0]?.command, "systemctl enable hotpush");
  const after = await probe(place, "restart", {
    wrapper: inOwnEtc(t, [install, found.faults[0]?.command ?? ""]),
  });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
});
