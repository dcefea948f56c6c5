import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { standInForDocker, startEngine } from "../harness/docker-stand-in.ts";
import { makePlace, onMachine, probe, setSettings } from "../harness/doctor.ts";
import { asInContainer } from "../harness/own-mounts.ts";
import { needs } from "../harness/requirements.ts";

test("repository-path: another path than on the host is found and fixed", needs("mount"), async (t) => {
  const place = makePlace(t);
  standInForDocker(place, { composeVersion: "2.40.0" });
  const host = join(place.root, "on the host");
  execFileSync("cp", ["-a", place.repoPath, host]);
  const mounts: { Source: string; Destination: string }[] = [];
  await startEngine(t, place, { container: { Config: { Labels: null }, Mounts: mounts } });
  const notMounted = await probe(place, "repository-path", { wrapper: asInContainer(place, []) });
  assert.match(notMounted.faults[0]?.text ?? "", /app is not mounted from the host\. In the compose file/);
  mounts.push({ Source: host, Destination: place.repoPath });
  const found = await probe(place, "repository-path", { wrapper: asInContainer(place, [place.repoPath]) });
  assert.match(found.faults[0]?.text ?? "", /is \S+on the host on the host, but \S+app here/);
  const [, source = "", destination = ""] =
    /^volumes: - (.+):(.+)$/.exec(found.faults[0]?.change ?? "") ?? [];
  mounts[0] = { Source: source, Destination: destination };
  setSettings(place, { REPO_PATH: `"${destination}"` });
  const after = await probe(place, "repository-path", { wrapper: asInContainer(place, [destination]) });
  assert.equal(after.outcome, "ok", JSON.stringify(after));
});

test("restart: a container without a restart policy is found and fixed", needs("mount"), async (t) => {
  const place = makePlace(t);
  const RestartPolicy = { Name: "no" };
  const container = { Config: { Labels: null }, Mounts: [], HostConfig: { RestartPolicy } };
  await startEngine(t, place, { container });
  const run = { wrapper: asInContainer(place) };
  const [fault] = (await probe(place, "restart", run)).faults;
  // The engine of the test has no container to change: the test makes the change of the command.
  const policy = /^docker update --restart (\S+) 0123456789ab$/.exec(fault?.command ?? "")?.[1];
  assert.equal(policy, "unless-stopped", JSON.stringify(fault));
  RestartPolicy.Name = policy;
  assert.equal((await probe(place, "restart", run)).fact, "Docker restarts the container");
});

test(
  "running: a service behind a proxy, without a port here, is found by its container",
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
    const [fault] = (await probe(place, "running", run)).faults;
    assert.match(fault?.text ?? "", /nobody receives a push/);
    // In place of compose, which would start it.
    assert.equal(fault?.command, `docker compose --project-directory ${place.repoPath} up --detach hotpush`);
    State.Status = "running";
    assert.equal((await probe(place, "running", run)).fact, "in the container shop-hotpush-1");
    for (const id of ["state-directory", "state-file-system"]) {
      assert.match(
        (await probe(place, id, run)).fact ?? "",
        /^it is in the container: docker compose exec/,
        id,
      );
    }
  },
);
