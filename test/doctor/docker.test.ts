import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, linkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { isInContainer } from "../../src/doctor/in-container.ts";
import { standInForDocker, startEngine } from "../harness/docker-stand-in.ts";
import { look, makePlace, type Place, setSettings } from "../harness/doctor.ts";
import { asInContainer, containerId, inOwnEtc } from "../harness/own-mounts.ts";
import { needs } from "../harness/requirements.ts";
import type { Scope } from "../harness/temporary.ts";

const onMachine = isInContainer()
  ? { skip: "in a container it says another thing" }
  : needs("mount", "otherUser");

test("docker-socket, docker-engine, compose: without a compose file nobody needs Docker", async (t) => {
  const place = makePlace(t);
  for (const id of ["docker-socket", "docker-engine", "compose", "compose-file", "lint-ports"]) {
    assert.equal((await look(place, id)).outcome, "skipped", id);
  }
});

test("docker-socket: none is told, with what installs it; right when an engine is there", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  const { faults } = await look(place, "docker-socket", run);
  assert.match(faults[0]?.text ?? "", /^There is no Docker socket at \S+docker\.sock\.$/);
  // That command installs an engine on the machine: an engine of the test takes its place.
  if (!isInContainer()) assert.match(faults[0]?.command ?? "", /^apt-get install -y docker\.io /);
  assert.equal((await look(place, "docker-engine", run)).outcome, "skipped");
  await startEngine(t, place, {});
  assert.equal((await look(place, "docker-socket", run)).outcome, "ok");
  assert.equal((await look(place, "docker-engine", run)).fact, "Docker 28.0.0, API 1.51");
});

test("docker-socket: an address that is not spoken is told, and gone by the command", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  const { faults } = await look(place, "docker-socket", { env: { ...run.env, DOCKER_HOST: "ssh://host" } });
  assert.match(faults[0]?.text ?? "", /^DOCKER_HOST is ssh:\/\/host, but only/);
  assert.match(faults[0]?.change ?? "", /^no DOCKER_HOST in the environment/);
});

test(
  "docker-socket: a socket of a group that this user is not in, on the host: usermod lets it in",
  onMachine,
  async (t) => {
    const place = makePlace(t);
    standInForDocker(place, { composeVersion: "2.40.0" });
    await socketOfGroup(t, place, 4_711);
    const asNobody = ["setpriv", "--reuid=nobody", "--regid=65534", "--init-groups"];
    const told = await look(place, "docker-socket", { wrapper: [...inOwnEtc(t, []), ...asNobody] });
    assert.match(
      told.faults[0]?.text ?? "",
      /\(uid 65534\) may not open \S+docker\.sock, which is for group 4711\./,
    );
    assert.equal(told.faults[0]?.change, 'in a container: group_add: ["4711"]');
    const command = told.faults[0]?.command ?? "false";
    assert.equal(command, "groupadd --gid 4711 docker-host && usermod --append --groups docker-host nobody");
    const after = await look(place, "docker-socket", { wrapper: [...inOwnEtc(t, [command]), ...asNobody] });
    assert.equal(after.outcome, "ok", JSON.stringify(after));
  },
);

test(
  "docker-socket: a socket of a group that this user is not in, in a container: group_add lets it in",
  needs("mount", "otherUser"),
  async (t) => {
    const place = makePlace(t);
    standInForDocker(place, { composeVersion: "2.40.0" });
    await socketOfGroup(t, place, 4_711);
    const asNobody = (groups: string) => ["setpriv", "--reuid=65534", "--regid=65534", groups];
    const told = await look(place, "docker-socket", {
      wrapper: [...asInContainer(place), ...asNobody("--clear-groups")],
    });
    const [, group] = /^group_add: \["(\d+)"\]$/.exec(told.faults[0]?.change ?? "") ?? [];
    assert.equal(group, "4711", JSON.stringify(told));
    const after = await look(place, "docker-socket", {
      wrapper: [...asInContainer(place), ...asNobody(`--groups=${group}`)],
    });
    assert.equal(after.outcome, "ok", JSON.stringify(after));
  },
);

test("docker-engine: a socket at which nobody listens, and an engine that is too old, are told", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  await leaveSocket(join(place.home, "left.sock"));
  const nobody = await look(place, "docker-engine", {
    env: { ...run.env, DOCKER_HOST: `unix://${place.home}/left.sock` },
  });
  // systemctl has nothing to start in a test: the engine of the test takes its place below.
  assert.deepEqual(
    nobody.faults.map(({ text, command }) => [text, command]),
    [["The Docker socket is there, but no engine listens.", "systemctl restart docker"]],
  );
  await startEngine(t, place, { apiVersion: "1.43" });
  const old = await look(place, "docker-engine", run);
  assert.match(old.faults[0]?.text ?? "", /speaks API 1\.43; 1\.44 \(Docker 25\) is the oldest/);
});

test(
  "docker-engine: in a container, a socket that was replaced on the host is told, and right when it is mounted anew",
  needs("mount"),
  async (t) => {
    const place = makePlace(t);
    const { env } = standInForDocker(place, { composeVersion: "2.40.0" });
    const old = join(place.home, "old.sock");
    const mounted = join(place.home, "mounted.sock");
    await leaveSocket(old);
    await startEngine(t, place, {});
    writeFileSync(mounted, "");
    const run = { env: { ...env, DOCKER_HOST: `unix://${mounted}` } };
    const told = await look(place, "docker-engine", {
      ...run,
      wrapper: asInContainer(place, [], [`mount --bind ${old} ${mounted}`, `rm ${old}`]),
    });
    assert.match(
      told.faults[0]?.text ?? "",
      /has a new socket, which this container does not see\. On the host:$/,
    );
    assert.equal(told.faults[0]?.command, `docker restart ${containerId.slice(0, 12)}`);
    const started = asInContainer(place, [], [`mount --bind ${place.home}/docker.sock ${mounted}`]);
    const after = await look(place, "docker-engine", { ...run, wrapper: started });
    assert.equal(after.outcome, "ok", JSON.stringify(after));
  },
);

test("compose: missing and old are told, with the packages that bring it", async (t) => {
  const place = makePlace(t);
  const outcomeOf = async (version?: string) =>
    look(place, "compose", standInForDocker(place, version === undefined ? {} : { composeVersion: version }));
  const missing = await outcomeOf();
  assert.match(missing.faults[0]?.text ?? "", /docker compose does not work/);
  assert.match(missing.faults[0]?.command ?? "", /^apt-get install -y docker-compose-plugin \|\|/);
  for (const version of ["2.6.0", "v2.23.3-desktop.1"]) {
    assert.match((await outcomeOf(version)).faults[0]?.text ?? "", /hotpush rollout needs 2\.24\.0/, version);
  }
  for (const version of ["2.24.0", "v2.40.3", "2.26.1-4", "5.0.0"])
    assert.equal((await outcomeOf(version)).outcome, "ok", version);
});

test(
  "repository-path: another path than on the host is told, and right with the line that is told",
  needs("mount"),
  async (t) => {
    const place = makePlace(t);
    standInForDocker(place, { composeVersion: "2.40.0" });
    const host = join(place.root, "on the host");
    execFileSync("cp", ["-a", place.repoPath, host]);
    const mounts: { Source: string; Destination: string }[] = [];
    await startEngine(t, place, { container: { Config: { Labels: null }, Mounts: mounts } });
    const notMounted = await look(place, "repository-path", { wrapper: asInContainer(place, []) });
    assert.match(notMounted.faults[0]?.text ?? "", /app is not mounted from the host\. In the compose file/);
    mounts.push({ Source: host, Destination: place.repoPath });
    const told = await look(place, "repository-path", { wrapper: asInContainer(place, [place.repoPath]) });
    assert.match(told.faults[0]?.text ?? "", /is \S+on the host on the host, but \S+app here/);
    const [, source = "", destination = ""] =
      /^volumes: - (.+):(.+)$/.exec(told.faults[0]?.change ?? "") ?? [];
    mounts[0] = { Source: source, Destination: destination };
    setSettings(place, { REPO_PATH: `"${destination}"` });
    const after = await look(place, "repository-path", { wrapper: asInContainer(place, [destination]) });
    assert.equal(after.outcome, "ok", JSON.stringify(after));
  },
);

test(
  "restart: a container that Docker does not start again is told, and right when its policy is changed",
  needs("mount"),
  async (t) => {
    const place = makePlace(t);
    const RestartPolicy = { Name: "no" };
    const container = { Config: { Labels: null }, Mounts: [], HostConfig: { RestartPolicy } };
    await startEngine(t, place, { container });
    const run = { wrapper: asInContainer(place) };
    const [fault] = (await look(place, "restart", run)).faults;
    // The engine of the test has no containers that could be changed: it says what that command would have changed.
    const policy = /^docker update --restart (\S+) 0123456789ab$/.exec(fault?.command ?? "")?.[1];
    assert.equal(policy, "unless-stopped", JSON.stringify(fault));
    RestartPolicy.Name = policy;
    assert.equal((await look(place, "restart", run)).fact, "Docker brings the container back");
  },
);

test(
  "running: a service behind a proxy has no port here, and is found by its container",
  onMachine,
  async (t) => {
    const place = makePlace(t);
    const hotpush = { image: "hotpush", environment: { WEBHOOK_SECRET: "s" }, restart: "always" };
    const run = standInForDocker(place, {
      composeVersion: "2.40.0",
      model: { name: "shop", services: { hotpush } },
    });
    const State = { Status: "exited", ExitCode: 70, StartedAt: "2026-01-01T00:00:00Z" };
    const Labels = { "com.docker.compose.service": "hotpush", "com.docker.compose.container-number": "1" };
    const container = { Id: "0", Name: "/shop-hotpush-1", Image: "sha256:0", RestartCount: 0, State };
    await startEngine(t, place, { container: { ...container, Config: { Image: "hotpush", Labels } } });
    const [fault] = (await look(place, "running", run)).faults;
    assert.match(fault?.text ?? "", /nobody receives a push/);
    // In place of compose, which would start it.
    assert.equal(fault?.command, `docker compose --project-directory ${place.repoPath} up --detach hotpush`);
    State.Status = "running";
    assert.equal((await look(place, "running", run)).fact, "in the container shop-hotpush-1");
    for (const id of ["state-directory", "state-file-system"]) {
      assert.match(
        (await look(place, id, run)).fact ?? "",
        /^it is in the container: docker compose exec/,
        id,
      );
    }
  },
);

test("compose-file: what compose cannot read is told in its words", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  writeFileSync(
    join(place.root, "bin/docker"),
    '#!/bin/sh\ncase "$*" in *version*) echo 2.40.0 ;; *) echo "services.app: image is missing" >&2; exit 15 ;; esac\n',
  );
  const told = await look(place, "compose-file", run);
  assert.match(
    told.faults[0]?.text ?? "",
    /^docker compose cannot read the project: services\.app: image is missing$/,
  );
  assert.match(told.faults[0]?.command ?? "", /^docker compose --project-directory \S+app config --quiet$/);
});

/** A Docker socket as root's packages leave it: for a group. The engine behind it is the test's. */
async function socketOfGroup(t: Scope, place: Place, group: number): Promise<void> {
  const socket = await startEngine(t, place, {});
  chownSync(socket, 0, group);
  chmodSync(socket, 0o660);
  for (const path of [join(place.root, ".."), place.root, place.home]) chmodSync(path, 0o755);
  chmodSync(place.envFile, 0o644);
}

/** Makes a socket at which nobody listens any more. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.listening`);
  await once(server, "listening");
  linkSync(`${path}.listening`, path);
  server.close();
  await once(server, "close");
}
