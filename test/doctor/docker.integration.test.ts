import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isInContainer } from "../../src/platform/docker/engine.ts";
import { makePlace, probe, standInForDocker, startEngine } from "../harness/doctor.ts";
import { inOwnEtc } from "../harness/mounts.ts";
import { needs } from "../harness/requirements.ts";

test("docker: no socket and an old engine are found, and a new one passes", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, "2.40.0");
  // That command restarts the engine of the machine: an engine of the test takes its place.
  assert.equal((await probe(place, "docker", run)).faults[0]?.command, "systemctl restart docker");
  await startEngine(t, place);
  assert.equal((await probe(place, "docker", run)).fact, "Docker 28.0.0, API 1.51");
  const other = makePlace(t);
  await startEngine(t, other, "1.43");
  const [old] = (await probe(other, "docker", standInForDocker(other, "2.40.0"))).faults;
  assert.match(old?.text ?? "", installPage);
});

test("docker: a credential helper that is missing is named, and its removal passes", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, "2.40.0");
  await startEngine(t, place);
  const file = join(place.home, ".docker/config.json");
  mkdirSync(join(place.home, ".docker"));
  for (const [logins, severity] of [
    [{ credsStore: "pass" }, "problem"],
    [{ credHelpers: { "registry.example.org": "ecr-login" } }, "warning"],
  ] as const) {
    writeFileSync(file, JSON.stringify(logins));
    const { faults } = await probe(place, "docker", run);
    assert.deepEqual(
      faults.map((fault) => [fault.severity, fault.text.includes(file)]),
      [[severity, true]],
    );
  }
  writeFileSync(file, "{}");
  assert.equal((await probe(place, "docker", run)).outcome, "ok");
});

const installPage = / https:\/\/docs\.docker\.com\/engine\/install\/$/;

const onMachine = isInContainer()
  ? { skip: "the doctor's report differs in a container" }
  : needs("mount", "otherUser");

test("docker: on the host, usermod adds this user to the socket's group", onMachine, async (t) => {
  const place = makePlace(t);
  standInForDocker(place, "2.40.0");
  const socket = await startEngine(t, place);
  chownSync(socket, 0, 4_711);
  chmodSync(socket, 0o660);
  for (const path of [join(place.root, ".."), place.root, place.home]) chmodSync(path, 0o755);
  chmodSync(place.envFile, 0o644);
  const asNobody = (...commands: readonly string[]) => [
    ...inOwnEtc(t, ["groupadd --gid 4711 docker", ...commands]),
    ...["setpriv", "--reuid=nobody", "--regid=65534", "--init-groups"],
  ];
  const found = await probe(place, "docker", { wrapper: asNobody() });
  const after = await probe(place, "docker", { wrapper: asNobody(found.faults[0]?.command ?? "false") });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
});

test("compose: a missing or old one is found, with the page that has its packages", async (t) => {
  const place = makePlace(t);
  const probeWith = (version?: string) => probe(place, "compose", standInForDocker(place, version));
  for (const version of [undefined, "v2.23.3-desktop.1"])
    assert.match((await probeWith(version)).faults[0]?.text ?? "", installPage);
  assert.equal((await probeWith("2.40.0")).outcome, "ok");
});
