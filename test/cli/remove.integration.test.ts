import assert from "node:assert/strict";
import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCli } from "../harness/hotpush.ts";
import { makeCheckout, makeServer, pushTo, waitsForGo } from "../harness/machine.ts";
import { readDeployments } from "../harness/records.ts";
import type { Scope } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a project is removed if somebody agrees and it is named; an interrupted removal goes on", async (t) => {
  const { server, checkout, remove, service } = await startPart(t, "true");
  // Without its options, the command may be about another project.
  const refused = await remove("--project", "shop");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /Nothing was changed; to agree: the same command with --yes\n$/);
  const elsewhere = await runCli(["remove"], { cwd: "/", env: server.env });
  assert.match(elsewhere.stderr, /Name one: hotpush remove --project <name>\n$/);
  assert.ok(existsSync(join(server.path, "projects/shop.env")));
  const { code, stdout, stderr } = await remove("--yes");
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^moved {5}.+\/projects\/shop\.env\nmoved {5}.+\/secrets\/.+\nmoved {5}.+\/sites\/shop\.caddy\n/m,
  );
  assert.match(stdout, /they are kept in \S+\/removed\.$/m);
  for (const name of ["projects/shop.env", "secrets/shop.env", "sites/shop.caddy"]) {
    assert.ok(!existsSync(join(server.path, name)), name);
    assert.ok(existsSync(join(server.path, "removed", name)), name);
  }
  assert.equal(statSync(join(server.path, "removed")).mode & 0o777, 0o700);
  assert.equal((await pushTo(service, "shop")).status, 401);
  assert.ok(existsSync(join(checkout, "deploy.sh")));
  // As it is left by an interruption, because the site goes last.
  const site = join(server.path, "sites/shop.caddy");
  renameSync(join(server.path, "removed/sites/shop.caddy"), site);
  assert.equal((await remove("--yes")).code, 0);
  assert.ok(!existsSync(site));
});

test("a project whose deployment runs is not removed", async (t) => {
  const { server, checkout, remove, service } = await startPart(t, waitsForGo);
  await pushTo(service, "shop");
  await until("it runs", () => readDeployments(server.runStatePath)[0]?.state === "running");
  const { code, stderr } = await remove("--yes");
  assert.equal(code, 1);
  assert.match(stderr, /^hotpush: Deployment 1 of shop runs\..+hotpush cancel 1.+Nothing was changed\.\n$/);
  assert.ok(existsSync(join(server.path, "projects/shop.env")));
  writeFileSync(join(checkout, "go"), "");
});

test("what waits of a project that is removed is cancelled", async (t) => {
  const { server, checkout, remove, service } = await startPart(t, "true");
  assert.equal((await runCli(["pause"], { cwd: checkout, env: server.env })).code, 0);
  await pushTo(service, "shop");
  await until("it is recorded", () => readDeployments(server.runStatePath)[0]?.state === "queued");
  assert.equal((await remove("--yes")).code, 0);
  assert.equal(readDeployments(server.runStatePath)[0]?.state, "cancelled");
});

/** A server with one project, whose service is one process that also receives. */
async function startPart(scope: Scope, script: string) {
  const server = makeServer(scope);
  const checkout = makeCheckout(scope, script);
  server.addProject("shop", checkout);
  mkdirSync(join(server.path, "sites"));
  writeFileSync(join(server.path, "sites/shop.caddy"), "http://shop.test {\n}\n");
  writeFileSync(join(server.path, "secrets/shop.env"), "TOKEN=t0ken\n", { mode: 0o600 });
  const service = await server.start("all");
  // There is no engine here: what is left of the network is reported.
  const env = { ...server.env, DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const remove = (...args: readonly string[]) => runCli(["remove", ...args], { cwd: checkout, env });
  return { server, checkout, service, remove };
}
