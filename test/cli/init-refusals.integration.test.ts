import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCli } from "../harness/hotpush.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { makeProject, model, snapshot } from "./init-project.ts";

test("a compose file whose directory compose takes for the project's is refused", async (t) => {
  const { repository, init } = makeProject(t);
  repository.write(".gitignore", ".env\n");
  repository.write(".env", "COMPOSE_FILE=deploy/compose.yaml\n");
  const before = snapshot(repository);
  const { code, stderr } = await init(["--yes"]);
  assert.equal(code, 1);
  assert.match(stderr, /COMPOSE_FILE in \.env names deploy\/compose\.yaml first/);
  assert.deepEqual(snapshot(repository), before);
});

test("a project without a compose file is refused, with the example that exists for it", async (t) => {
  const { repository, init } = makeProject(t, null);
  const before = snapshot(repository);
  const { code, stderr } = await init(["--yes"]);
  assert.equal(code, 1);
  const path = /There is no compose file in .*: (\S+) begins with the commands/.exec(
    stderr.replace(/\s+/g, " "),
  )?.[1];
  assert.ok(existsSync(path ?? ""), stderr);
  assert.deepEqual(snapshot(repository), before);
});

test("a proxy with certificates of its own is refused, unless the person gives its service an address", async (t) => {
  const ports = [{ mode: "ingress", target: 443, published: "443", protocol: "tcp" }];
  const { repository, init } = makeProject(t, {
    services: { ...model.services, edge: { image: "traefik:v3", ports } },
  });
  const before = snapshot(repository);
  const { code, stderr } = await init(["--yes"]);
  assert.equal(code, 1);
  assert.match(stderr.replace(/\s+/g, " "), /^hotpush: edge publishes port 443, .* (\S+compose\.yaml) /);
  assert.deepEqual(snapshot(repository), before);
});

test("a link in the place of a file is refused, and nothing is written", async (t) => {
  const { repository, init } = makeProject(t);
  const outside = join(temporaryDirectory(t), "secrets");
  writeFileSync(outside, "");
  symlinkSync(outside, join(repository.directory, ".env"));
  const { code, stderr } = await init(["--yes"]);
  assert.equal(code, 1);
  assert.match(stderr, /\.env is a link or a directory/);
  assert.equal(readFileSync(outside, "utf8"), "");
  assert.equal(existsSync(join(repository.directory, "deploy.sh")), false);
});

test("init says what it cannot set up", async (t) => {
  const nowhere = await runCli(["init"], { cwd: temporaryDirectory(t) });
  assert.deepEqual([nowhere.code, /is not in a git checkout/.test(nowhere.stderr)], [1, true]);
  const twice = makeProject(t, { services: { hotpush: {}, ...model.services } });
  assert.match((await twice.init()).stderr, /has a service called hotpush/);
  const remote = makeProject(t);
  const { stderr } = await remote.init([], { env: { ...remote.env, DOCKER_HOST: "tcp://10.0.0.1:2376" } });
  assert.match(stderr, /run this on the server itself/);
  const unknown = makeProject(t);
  assert.match((await unknown.init(["--at", "app=:8081"])).stderr, /app/);
  assert.equal((await unknown.init(["--host", "sourceforge"])).code, 2);
  assert.equal((await unknown.init(["--url", "ftp://x"])).code, 2);
});

test("a project that compose refuses is reported in compose's words", async (t) => {
  const { init, env } = makeProject(t);
  const docker = join(env.PATH.split(":")[0] ?? "", "docker");
  const failing =
    'case "$*" in *config*) echo "services.web.image must be a string" >&2; exit 15 ;; *"compose version"*) echo 2.40.3 ;; esac';
  writeScript(docker, `#!/bin/sh\n${failing}\n`);
  assert.match((await init()).stderr, /services\.web\.image must be a string$/m);
  writeScript(docker, "#!/bin/sh\necho 2.20.0\n");
  assert.match((await init()).stderr, /Docker Compose is 2\.20\.0 here; 2\.24\.4 or newer is needed/);
  chmodSync(docker, 0o755);
});
