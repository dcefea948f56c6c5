import assert from "node:assert/strict";
import { test } from "node:test";
import { checks } from "../../src/doctor/checks.ts";
import { runCli } from "../harness/cli.ts";
import type { DoctorCheck } from "../harness/doctor.ts";
import { makeRepository } from "../harness/repository.ts";
import type { Scope } from "../harness/temporary.ts";
import { onEngine } from "../lab/on-engine.ts";

const lints = checks.filter(({ group }) => group === "Compose file").map(({ id }) => id);
const always = "image: 'debian:trixie-slim', restart: always";
const healthy = `${always}, healthcheck: {test: [CMD, 'true']}`;
const database = "db: {image: 'postgres:17', restart: always, healthcheck: {test: [CMD, 'true']}}";

/** Typical projects, each with the warnings that its own file causes. */
const projects = [
  ["one app", `web: {${healthy}, ports: ['8080:3000']}`, []],
  ["an app and a worker", `web: {${healthy}, ports: ['8080:3000']}, worker: {${always}}`, []],
  [
    "an app and a database that it waits for",
    `web: {${healthy}, ports: ['8080:3000'], depends_on: {db: {condition: service_healthy}}}, ${database}`,
    [],
  ],
  [
    "an app with a name of its own",
    `web: {${healthy}, ports: ['80:80', '9229:9229'], container_name: shop}`,
    [],
  ],
  [
    "an app on its own network",
    `web: {${healthy}, ports: ['80:80'], networks: [back]}`,
    [],
    "networks: {back: {}}",
  ],
  ["only a worker", `worker: {${always}}`, []],
  [
    "an app and a Traefik",
    `web: {${healthy}, stop_grace_period: 30s, labels: {hotpush.rollout: scale}}, edge: {image: 'traefik:v3', restart: always, ports: ['80:80']}`,
    [],
  ],
  ["an app without a health check", `web: {${always}, ports: ['8080:3000']}`, ["lint-healthcheck: web"]],
  [
    "an app that does not wait for its database, and does not come back",
    `web: {image: debian, healthcheck: {test: [CMD, 'true']}, ports: ['8080:3000'], depends_on: [db]}, ${database}`,
    ["lint-depends-on: web", "lint-restart: web"],
  ],
] as const;

onEngine("hotpush doctor after a fresh init", (lab) => {
  for (const [what, services, expected, more = ""] of projects) {
    test(`warns only of what the user's own file causes: ${what}`, async (t) => {
      assert.deepEqual(await warningsAfterInit(t, `services: {${services}}\n${more}\n`, lab), expected);
    });
  }
});

/** @returns `<check>: <service>` for each fault in the compose files, after `hotpush init` beside `compose` */
async function warningsAfterInit(
  scope: Scope,
  compose: string,
  lab: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const repository = makeRepository(scope);
  repository.write("compose.yaml", compose);
  // The image is not built: that takes longer than all the rest.
  repository.write(".env", "HOTPUSH_IMAGE=hotpush\n");
  repository.git("remote", "add", "origin", "https://github.com/octo/shop.git");
  const { PATH, DOCKER_HOST, DOCKER_CONFIG } = lab;
  const options = { cwd: repository.directory, env: { PATH, DOCKER_HOST, DOCKER_CONFIG } };
  const init = await runCli(["init", "--alone"], options);
  assert.equal(init.code, 0, init.stderr);
  const { stdout } = await runCli(["doctor", "--json", ...lints], options);
  const report: { readonly checks: readonly DoctorCheck[] } = JSON.parse(stdout);
  assert.deepEqual(
    report.checks.filter(({ outcome }) => outcome === "skipped"),
    [],
  );
  return report.checks.flatMap(({ id, faults }) => faults.map(({ text }) => `${id}: ${text.split(" ")[0]}`));
}
