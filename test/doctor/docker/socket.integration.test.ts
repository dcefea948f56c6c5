import assert from "node:assert/strict";
import { chmodSync, chownSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isInContainer } from "../../../src/platform/docker/mountinfo.ts";
import { standInForDocker, startEngine } from "../../harness/docker-stand-in.ts";
import { makePlace, onMachine, type Place, probe } from "../../harness/doctor.ts";
import { asInContainer, inOwnEtc } from "../../harness/own-mounts.ts";
import { needs } from "../../harness/requirements.ts";
import type { Scope } from "../../harness/temporary.ts";

test("docker-socket: a missing one is found, with the packages to install", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  const { faults } = await probe(place, "docker-socket", run);
  assert.match(faults[0]?.text ?? "", /^There is no Docker socket at \S+docker\.sock\.$/);
  // That command installs an engine on the machine: an engine of the test takes its place.
  if (!isInContainer()) assert.match(faults[0]?.command ?? "", /^apt-get install -y docker\.io /);
  assert.equal((await probe(place, "docker-engine", run)).outcome, "skipped");
  await startEngine(t, place, {});
  assert.equal((await probe(place, "docker-socket", run)).outcome, "ok");
  assert.equal((await probe(place, "docker-engine", run)).fact, "Docker 28.0.0, API 1.51");
});

test("docker-socket: an unsupported DOCKER_HOST is found, with its variable", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  const { faults } = await probe(place, "docker-socket", { env: { ...run.env, DOCKER_HOST: "ssh://host" } });
  assert.match(faults[0]?.text ?? "", /^DOCKER_HOST is ssh:\/\/host, but only/);
  assert.match(faults[0]?.change ?? "", /^no DOCKER_HOST in the environment/);
});

test("docker-socket: on the host, usermod adds this user to the socket's group", onMachine, async (t) => {
  const place = makePlace(t);
  standInForDocker(place, { composeVersion: "2.40.0" });
  await socketOfGroup(t, place, 4_711);
  const asNobody = ["setpriv", "--reuid=nobody", "--regid=65534", "--init-groups"];
  const found = await probe(place, "docker-socket", { wrapper: [...inOwnEtc(t, []), ...asNobody] });
  assert.match(
    found.faults[0]?.text ?? "",
    /\(uid 65534\) may not open \S+docker\.sock; its group 4711 may\./,
  );
  assert.equal(found.faults[0]?.change, 'in a container: group_add: ["4711"]');
  const command = found.faults[0]?.command ?? "false";
  assert.equal(command, "groupadd --gid 4711 docker-host && usermod --append --groups docker-host nobody");
  const after = await probe(place, "docker-socket", { wrapper: [...inOwnEtc(t, [command]), ...asNobody] });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
});

test(
  "docker-socket: in a container, group_add adds this user to the socket's group",
  needs("mount", "otherUser"),
  async (t) => {
    const place = makePlace(t);
    standInForDocker(place, { composeVersion: "2.40.0" });
    await socketOfGroup(t, place, 4_711);
    const asNobody = (groups: string) => ["setpriv", "--reuid=65534", "--regid=65534", groups];
    const found = await probe(place, "docker-socket", {
      wrapper: [...asInContainer(place), ...asNobody("--clear-groups")],
    });
    const [, group] = /^group_add: \["(\d+)"\]$/.exec(found.faults[0]?.change ?? "") ?? [];
    assert.equal(group, "4711", JSON.stringify(found));
    const after = await probe(place, "docker-socket", {
      wrapper: [...asInContainer(place), ...asNobody(`--groups=${group}`)],
    });
    assert.equal(after.outcome, "ok", JSON.stringify(after));
  },
);

/** A Docker socket as root's packages leave it: for a group. The engine behind it is the test's. */
async function socketOfGroup(t: Scope, place: Place, group: number): Promise<void> {
  const socket = await startEngine(t, place, {});
  chownSync(socket, 0, group);
  chmodSync(socket, 0o660);
  for (const path of [join(place.root, ".."), place.root, place.home]) chmodSync(path, 0o755);
  chmodSync(place.envFile, 0o644);
}
