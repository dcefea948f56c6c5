import assert from "node:assert/strict";
import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCli } from "../harness/hotpush.ts";
import { makeCheckout, makeServer, pushTo, waitsForGo } from "../harness/machine.ts";
import { readDeployments } from "../harness/records.ts";
import type { Scope } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a removed project gets no more pushes, and its files are kept aside", async (t) => {
  const { server, checkout, remove, service } = await startPart(t, "true");
  const { code, stdout, stderr } = await remove("--yes");
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^moved {5}.+\/projects\/shop\.env\nmoved {5}.+\/secrets\/.+\nmoved {5}.+\/sites\/shop\.caddy\n/m,
  );
  assert.match(stdout, /they are kept in \S+\/removed\.$/m);
  for (const file of ["projects/shop.env", "secrets/shop.env", "sites/shop.caddy"]) {
    assert.ok(!existsSync(join(server.path, file)), file);
    assert.ok(existsSync(join(server.path, "removed", file)), file);
  }
  assert.equal(statSync(join(server.path, "removed")).mode & 0o777, 0o700);
  assert.equal((await pushTo(service, "shop")).status, 401);
  assert.ok(existsSync(join(checkout, "deploy.sh")));
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

test("without a terminal it needs --yes, and outside of a checkout a name", async (t) => {
  const { server, remove } = await startPart(t, "true");
  const { code, stderr } = await remove();
  assert.equal(code, 1);
  assert.match(stderr, /Nothing was changed; to agree: hotpush remove --yes\n$/);
  assert.ok(existsSync(join(server.path, "projects/shop.env")));
  const elsewhere = await runCli(["remove"], { cwd: "/", env: server.env });
  assert.match(elsewhere.stderr, /Name one: hotpush remove --project <name>\n$/);
});

test("a removal that was interrupted can be repeated", async (t) => {
  const { server, remove } = await startPart(t, "true");
  const removed = join(server.path, "removed/projects");
  mkdirSync(removed, { recursive: true });
  renameSync(join(server.path, "projects/shop.env"), join(removed, "shop.env"));
  const { code, stderr } = await remove("--yes");
  assert.equal(code, 0, stderr);
  assert.ok(!existsSync(join(server.path, "sites/shop.caddy")));
});

/** A server with one project, whose service is one process that also receives. */
async function startPart(scope: Scope, script: string) {
  const server = makeServer(scope);
  const checkout = makeCheckout(scope, script);
  server.addProject("shop", checkout);
  for (const directory of ["sites", "secrets"]) mkdirSync(join(server.path, directory));
  writeFileSync(join(server.path, "sites/shop.caddy"), "http://shop.test {\n}\n");
  writeFileSync(join(server.path, "secrets/shop.env"), "TOKEN=t0ken\n", { mode: 0o600 });
  const service = await server.start("all");
  await until("it answers", () => existsSync(join(server.runStatePath, "control.sock")));
  // There is no engine here: what is left of the network is reported.
  const env = { ...server.env, DOCKER_HOST: "unix:///nowhere/docker.sock" };
  const remove = (...args: readonly string[]) => runCli(["remove", ...args], { cwd: checkout, env });
  return { server, checkout, service, remove };
}
