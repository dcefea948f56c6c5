import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { runCli } from "../harness/cli.ts";
import { makeRepository } from "../harness/repository.ts";
import { openLab } from "../lab/lab.ts";

const lab = await openLab();
const skip = lab.kind === "ready" ? false : lab.reason;
const run = promisify(execFile);

interface Model {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly ports?: readonly { readonly published: string; readonly host_ip?: string }[];
        readonly container_name?: string;
        readonly networks?: object;
        readonly volumes?: readonly { readonly source: string; readonly target: string }[];
      }
    >
  >;
}

/** The configuration that real compose reads after `init`; no image is built. */
async function modelAfterInit(t: TestContext, compose: string, remote?: string, ...args: readonly string[]) {
  const labEnv = lab.kind === "ready" ? lab.env : {};
  const repository = makeRepository(t, "my shop");
  repository.write("compose.yaml", compose);
  repository.write(".gitignore", ".env\n");
  repository.write(".env", "HOTPUSH_IMAGE=hotpush\n");
  if (remote !== undefined) repository.git("remote", "add", "origin", remote);
  repository.commit();
  const env = { PATH: labEnv.PATH, DOCKER_HOST: labEnv.DOCKER_HOST, DOCKER_CONFIG: labEnv.DOCKER_CONFIG };
  const options = { cwd: repository.directory, env };
  const { code, stdout, stderr } = await runCli(["init", "--alone", ...args], options);
  assert.equal(code, 0, stderr);
  assert.equal((await runCli(["init", "--alone", "--check"], options)).code, 0);
  const config = ["compose", "--project-directory", repository.directory, "config", "--format", "json"];
  // From another directory, as `hotpush rollout --directory` does it.
  const asked = await run("docker", config, { env: { ...labEnv, PWD: "/" }, cwd: "/" });
  const model: Model = JSON.parse(asked.stdout);
  return { model, stdout, directory: repository.directory };
}

function portsOf(model: Model, service: string): readonly string[] {
  const ports = model.services[service]?.ports ?? [];
  return ports.map(({ published, host_ip }) =>
    host_ip === undefined ? published : `${host_ip}:${published}`,
  );
}

test("compose reads init's files: Caddy has the app's ports and networks, the app no port or name", {
  skip,
}, async (t) => {
  const compose = `services:
  "1":
    image: debian
    container_name: shop
    networks: [backend]
    ports: ["127.0.0.1:8080:3000", "9229:9229"]
  db:
    image: postgres:17
    ports: ["5432:5432"]
networks:
  backend:
`;
  const bare = join(makeRepository(t).directory, "a $remote.git");
  mkdirSync(bare);
  const { model, directory } = await modelAfterInit(t, compose, bare);
  assert.deepEqual(portsOf(model, "1"), []);
  assert.equal(model.services["1"]?.container_name, undefined);
  assert.deepEqual(portsOf(model, "caddy"), ["127.0.0.1:8080"]);
  assert.deepEqual(portsOf(model, "db"), ["5432"]);
  assert.deepEqual(Object.keys(model.services.caddy?.networks ?? {}).sort(), ["backend", "default"]);
  const mounts = (model.services.hotpush?.volumes ?? []).map(({ source, target }) => [source, target]);
  assert.ok(mounts.some(([source, target]) => source === directory && target === directory));
  // Compose writes a dollar sign twice, so that its output can be read again.
  assert.ok(
    mounts.some(([source]) => source?.replaceAll("$$", "$") === bare),
    JSON.stringify(mounts),
  );
});

test("the project's own Caddy gets the live files, and keeps its configuration", { skip }, async (t) => {
  const compose = `services:
  app:
    image: debian
  caddy:
    image: caddy:2
    ports: ["80:80", "443:443"]
    volumes: ["./Caddyfile:/etc/caddy/Caddyfile:ro"]
`;
  const { model, stdout } = await modelAfterInit(t, compose, "git@github.com:octo/shop.git");
  assert.deepEqual(portsOf(model, "caddy"), ["80", "443"]);
  const targets = (model.services.caddy?.volumes ?? []).map(({ target }) => target);
  assert.deepEqual(targets.sort(), ["/etc/caddy/Caddyfile", "/run/live"]);
  const { apps } = await adapted(caddyfileOf(stdout));
  assert.match(JSON.stringify(apps), /"dial":"\{file\.\/run\/live\/app\}:8080"/);
  assert.match(JSON.stringify(apps), /"dial":"\{file\.\/run\/live\/hotpush\}:9000"/);
});

/** The Caddyfile with the lines from init, at the place that init names. */
function caddyfileOf(stdout: string): string {
  const told = stdout.slice(stdout.indexOf("\nIn the configuration of caddy:"), stdout.indexOf("\nNext:"));
  const [, , global = "", site = ""] = told.split(/^.*:$/m);
  return `{\n${global}}\n:80 {\n${site.replace("<its port>", "8080")}}\n`;
}

/** A Caddyfile as a real Caddy reads it. */
async function adapted(caddyfile: string): Promise<{ readonly apps: unknown }> {
  const labEnv = lab.kind === "ready" ? lab.env : {};
  const adapt = ["caddy", "adapt", "--adapter", "caddyfile", "--config", "/dev/stdin"];
  const adapting = run("docker", ["run", "--rm", "--interactive", "caddy:2", ...adapt], { env: labEnv });
  adapting.child.stdin?.end(caddyfile);
  return JSON.parse((await adapting).stdout);
}

for (const [what, compose] of [
  ["Traefik", "services: {app: {image: debian}, edge: {image: 'traefik:v3', ports: ['80:80']}}"],
  ["another proxy", "services: {app: {image: debian}, edge: {image: 'nginx', ports: ['80:80']}}"],
  ["no published port", "services: {app: {image: debian}}"],
] as const) {
  test(`compose reads what init wrote for a project with ${what}`, { skip }, async (t) => {
    const { model } = await modelAfterInit(t, compose, undefined, "--host", "gitea");
    assert.ok(model.services.hotpush);
    assert.deepEqual(portsOf(model, "hotpush"), what === "no published port" ? ["9000"] : []);
    assert.deepEqual(portsOf(model, "edge"), what === "no published port" ? [] : ["80"]);
  });
}

test("the project's own override stays in use", { skip }, async (t) => {
  const labEnv = lab.kind === "ready" ? lab.env : {};
  const repository = makeRepository(t);
  repository.write("docker-compose.yml", "services: {app: {image: debian, ports: ['8080:80']}}\n");
  repository.write("docker-compose.override.yml", "services: {app: {environment: {MODE: production}}}\n");
  writeFileSync(join(repository.directory, ".env"), "HOTPUSH_IMAGE=hotpush\n");
  const env = { PATH: labEnv.PATH, DOCKER_HOST: labEnv.DOCKER_HOST, DOCKER_CONFIG: labEnv.DOCKER_CONFIG };
  assert.equal((await runCli(["init", "--alone"], { cwd: repository.directory, env })).code, 0);
  const asked = await run("docker", ["compose", "config"], { cwd: repository.directory, env: labEnv });
  assert.match(asked.stdout, /MODE: production/);
  assert.match(asked.stdout, /^ {2}hotpush:$/m);
});
