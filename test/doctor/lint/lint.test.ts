import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Fault, resultOf } from "../../../src/doctor/check.ts";
import { type Check, checks } from "../../../src/doctor/checks.ts";
import { makeDoctorContext } from "../../../src/doctor/context.ts";
import { readSettings } from "../../../src/doctor/settings.ts";
import type { ComposeModel, ComposeService } from "../../../src/platform/compose/model.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { changeModel } from "./change-model.ts";
import { app, caddy, good, live } from "./good-compose-file.ts";
import { wrong } from "./wrong-compose-files.ts";

for (const { check, name, services, says, change, severity = "warning" } of wrong) {
  test(`${check}: ${name}: found and fixed`, async () => {
    const model = { ...good, services: { ...good.services, ...services } };
    const faults = await faultsOf(check, model);
    assert.equal(faults.length, 1, JSON.stringify(faults));
    assert.match(faults[0]?.text ?? "", says);
    assert.deepEqual([faults[0]?.severity, faults[0]?.change], [severity, change]);
    assert.deepEqual(await faultsOf(check, await fixed(check, model)), []);
  });
}

test("a project like that of the examples has no fault", async () => {
  for (const { id } of checks.filter(({ group }) => group === "Compose file")) {
    assert.deepEqual(await faultsOf(id, good), [], id);
  }
});

test("lint-healthcheck: a service behind the proxy needs one, a worker without port none", async (t) => {
  const path = join(temporaryDirectory(t), "Caddyfile");
  writeFileSync(path, ":80 {\n\treverse_proxy {file./run/live/web}:3000\n}\n");
  const mount = { type: "bind", source: path, target: "/etc/caddy/Caddyfile" };
  const bare = { image: "shop", restart: "always" };
  const services = { web: bare, worker: bare, caddy: { ...caddy, volumes: [live, mount] } };
  const faults = await faultsOf("lint-healthcheck", { name: "shop", services });
  assert.equal(faults.length, 1, JSON.stringify(faults));
  assert.match(faults[0]?.change ?? "", /^services\.web\.healthcheck: .*localhost:3000/);
});

test("lint-depends-on: a proxy need not wait for its app", async () => {
  const proxy = { ...caddy, depends_on: { app: { condition: "service_started" } } };
  const model = { ...good, services: { ...good.services, caddy: proxy } };
  assert.deepEqual(await faultsOf("lint-depends-on", model), []);
});

test("a service with the label recreate has no fault", async () => {
  const labels = { "hotpush.rollout": "recreate" };
  const alone = {
    ...app,
    labels,
    container_name: "shop",
    network_mode: "host",
    ports: [{ published: "80" }],
  };
  const model = { ...good, services: { ...good.services, app: alone } };
  for (const id of ["lint-ports", "lint-container-name", "lint-network"]) {
    assert.deepEqual(await faultsOf(id, model), [], id);
  }
});

test('lint-restart: a service with restart: "no" has no fault', async () => {
  const seed: ComposeService = { image: "shop-app", restart: "no" };
  assert.deepEqual(await faultsOf("lint-restart", { ...good, services: { ...good.services, seed } }), []);
});

test("a migration with a database's image has no fault", async () => {
  const waiting = { ...app, depends_on: { migrate: { condition: "service_completed_successfully" } } };
  const migrate = { image: "postgres:17", container_name: "shop-migrate" };
  const model = { ...good, services: { ...good.services, app: waiting, migrate } };
  for (const { id } of checks.filter(({ group }) => group === "Compose file")) {
    assert.deepEqual(await faultsOf(id, model), [], id);
  }
});

test("lint-live-file: a Caddyfile that sends to a service's name is found and fixed", async (t) => {
  const path = join(temporaryDirectory(t), "Caddyfile");
  const mount = { type: "bind", source: path, target: "/etc/caddy/Caddyfile" };
  const model = { ...good, services: { ...good.services, caddy: { ...caddy, volumes: [live, mount] } } };
  writeFileSync(path, "{$SITE:localhost} {\n\treverse_proxy app:8080\n}\n");
  const found = await faultsOf("lint-live-file", model);
  assert.deepEqual(
    found.map(({ change }) => change),
    [`${path}: reverse_proxy {file./run/live/app}:8080`, `${path}: { admin unix//run/live/admin.sock|0660 }`],
  );
  const [line, admin] = found.map(({ change = "" }) => change.slice(path.length + 2));
  writeFileSync(path, `${admin?.replaceAll(/([{}])/g, "\n$1\n")}\n{$SITE:localhost} {\n\t${line}\n}\n`);
  assert.deepEqual(await faultsOf("lint-live-file", model), []);
});

test("lint-label: the known labels are those that a roll-out, init and their page have", async () => {
  const model = { ...good, services: { app: { ...app, labels: { "hotpush.chek": "" } } } };
  const [unknown] = await faultsOf("lint-label", model);
  const known = unknown?.text.match(/(?<=Known are ).*(?=\.$)/)?.[0].split(", ") ?? [];
  const root = join(import.meta.dirname, "../../..");
  const files = globSync(["src/rollout/**/*.ts", "src/init/upstreams/*.ts"], { cwd: root });
  const text = files.map((path) => readFileSync(join(root, path), "utf8")).join("");
  const read = [...text.matchAll(/"(hotpush\.[a-z-]+)"/g)].map(([, label]) => label);
  assert.deepEqual(known.toSorted(), [...new Set(read)].sort());
  const page = readFileSync(join(root, "docs/rollout.md"), "utf8");
  const found = [...page.matchAll(/^\| `(hotpush\.[a-z-]+)` /gm)].map(([, label = ""]) => label);
  assert.ok(found.length > 0);
  for (const label of found) assert.ok(known.includes(label), label);
});

/** Applies the changes until nothing is found, at most three: another proxy needs more than its name. */
async function fixed(check: string, model: ComposeModel, rest = 3): Promise<ComposeModel> {
  const [fault] = await faultsOf(check, model);
  return fault && rest > 0 ? fixed(check, changeModel(model, fault.change ?? ""), rest - 1) : model;
}

async function faultsOf(id: string, model: ComposeModel): Promise<readonly Fault[]> {
  const check: Check = checks.find((one) => one.id === id) ?? assert.fail(id);
  const context = makeDoctorContext(
    readSettings({ DOCKER_HOST: "unix:///nonexistent" }, "/nonexistent"),
    null,
  );
  const compose = async () => ({ kind: "model", version: "2.40.0", model }) as const;
  const result = resultOf(await check.probe({ ...context, compose }));
  return result.outcome === "faulty" ? result.faults : [];
}
