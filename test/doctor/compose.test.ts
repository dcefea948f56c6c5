import assert from "node:assert/strict";
import { test } from "node:test";
import { type Fault, makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { checks, runChecks } from "../../src/doctor/examine.ts";
import type { ComposeModel, ComposeService } from "../../src/platform/compose.ts";

const app: ComposeService = {
  image: "shop-app",
  restart: "unless-stopped",
  expose: ["8080"],
  healthcheck: { interval: "10s" },
};
const live = { type: "volume", source: "live", target: "/run/live" };
const ports = [{ published: "443", target: 443 }];
const caddy: ComposeService = { image: "caddy:2", restart: "always", ports, volumes: [live] };
const hotpush: ComposeService = { image: "hotpush", restart: "always", ports: [{ published: "9000" }] };
const db: ComposeService = {
  image: "postgres:17",
  restart: "always",
  volumes: [{ type: "volume", source: "db", target: "/db" }],
};

/** A project like that of the examples. */
const good: ComposeModel = { name: "shop", services: { app, caddy, hotpush, db } };
const recreate = { "hotpush.rollout": "recreate" };

const healthcheck = (port: number) =>
  `services.app.healthcheck: {test: ["CMD", "curl", "-f", "http://localhost:${port}/"], interval: 10s, start_period: 30s, start_interval: 500ms}`;

/** What a person has written into the good service, and the change that is advised. */
const wrong: readonly (readonly [broken: Partial<ComposeService>, change: string])[] = [
  [{ ports: [{ published: "8080", target: 80 }] }, "services.app: remove port 8080"],
  [{ container_name: "shop" }, "services.app: remove container_name shop"],
  [{ network_mode: "host" }, "services.app: remove network_mode host"],
  [{ networks: { default: { ipv4_address: "10.0.0.5" } } }, "services.app: remove fixed address 10.0.0.5"],
  [{ healthcheck: { disable: true } }, healthcheck(8080)],
  [{ restart: "on-failure" }, "services.app.restart: unless-stopped"],
];

test("services: each fault has its change, and a project like that of the examples has none", async () => {
  for (const [broken, change] of wrong) {
    const found = await faultsOf(modelWith({ app: { ...app, ...broken } }));
    assert.deepEqual(
      found.map((fault) => [fault.severity, fault.change]),
      [["warning", change]],
    );
  }
  assert.deepEqual(await faultsOf(good), []);
});

test("a service that may be down, and a migration with a database's image, have no fault", async () => {
  const alone = { ...app, labels: recreate, container_name: "shop", network_mode: "host" };
  const depends_on = { migrate: { condition: "service_completed_successfully" } };
  const migrate = { image: "postgres:17", container_name: "shop-migrate" };
  const model = modelWith({ app: { ...alone, depends_on }, migrate, seed: { image: "x", restart: "no" } });
  assert.deepEqual(await faultsOf(model), []);
});

function modelWith(services: ComposeModel["services"]): ComposeModel {
  return { ...good, services: { ...good.services, ...services } };
}

async function faultsOf(model: ComposeModel): Promise<readonly Fault[]> {
  const settings = readSettings({ DOCKER_HOST: "unix:///nonexistent" }, "/nonexistent");
  const compose = async () => ({ kind: "model", version: "2.40.0", model }) as const;
  const context = { ...makeDoctorContext(settings, null), compose };
  const [report] = await runChecks(
    context,
    checks.filter(({ id }) => id === "services"),
  );
  return report?.result.outcome === "faulty" ? report.result.faults : [];
}
