import assert from "node:assert/strict";
import { once } from "node:events";
import { linkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { standInForDocker, startEngine } from "../../harness/docker-stand-in.ts";
import { makePlace, probe } from "../../harness/doctor.ts";
import { asInContainer, containerId } from "../../harness/own-mounts.ts";
import { needs } from "../../harness/requirements.ts";

test("docker-engine: a socket without a listener and an old engine are found", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  await leaveSocket(join(place.home, "left.sock"));
  const nobody = await probe(place, "docker-engine", {
    env: { ...run.env, DOCKER_HOST: `unix://${place.home}/left.sock` },
  });
  // systemctl has nothing to start in a test: the engine of the test takes its place below.
  assert.deepEqual(
    nobody.faults.map(({ text, command }) => [text, command]),
    [["The Docker socket exists, but no engine listens.", "systemctl restart docker"]],
  );
  await startEngine(t, place, { apiVersion: "1.43" });
  const old = await probe(place, "docker-engine", run);
  assert.match(
    old.faults[0]?.text ?? "",
    /has API 1\.43; hotpush rollout needs at least 1\.44 \(Docker 25\)/,
  );
});

test(
  "docker-engine: in a container, a socket replaced on the host is found and fixed",
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
    const found = await probe(place, "docker-engine", {
      ...run,
      wrapper: asInContainer(place, [], [`mount --bind ${old} ${mounted}`, `rm ${old}`]),
    });
    assert.match(
      found.faults[0]?.text ?? "",
      /has a new socket, which this container does not have\. On the host:$/,
    );
    assert.equal(found.faults[0]?.command, `docker restart ${containerId.slice(0, 12)}`);
    const started = asInContainer(place, [], [`mount --bind ${place.home}/docker.sock ${mounted}`]);
    const after = await probe(place, "docker-engine", { ...run, wrapper: started });
    assert.equal(after.outcome, "ok", JSON.stringify(after));
  },
);

/** Makes a socket at which nobody listens any more. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.listening`);
  await once(server, "listening");
  linkSync(`${path}.listening`, path);
  server.close();
  await once(server, "close");
}
