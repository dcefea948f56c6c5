import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serverFilesAt, serverStateAt } from "../../src/config/server.ts";
import { type DoctorContext, makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { checks, runChecks } from "../../src/doctor/examine.ts";
import type { Fault } from "../../src/doctor/finding.ts";
import { unmountedFault } from "../../src/doctor/in-run.ts";
import type { ComposeModel, ComposeService } from "../../src/platform/compose.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { findExposedFiles } from "../../src/setup/build-context.ts";
import { readVersion } from "../../src/version.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** What a check finds where compose or the engine answers as `answers` say. */
async function faultsOf(
  wanted: string,
  answers: Partial<DoctorContext>,
  server: DoctorContext["server"] = null,
): Promise<readonly Fault[]> {
  const settings = readSettings({ DOCKER_HOST: "unix:///nonexistent" }, "/nonexistent");
  const [report] = await runChecks(
    { ...makeDoctorContext(settings, null, server), ...answers },
    checks.filter(({ id }) => id === wanted),
  );
  return report?.result.faults ?? [];
}

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
  `services.app.healthcheck: {test: ["CMD", "curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:${port}/"], interval: 10s, start_period: 30s, start_interval: 500ms}`;

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
    const found = await serviceFaults(modelWith({ app: { ...app, ...broken } }));
    assert.deepEqual(
      found.map((fault) => [fault.severity, fault.change]),
      [["warning", change]],
    );
  }
  assert.deepEqual(await serviceFaults(good), []);
});

test("a service that may be down, and a migration with a database's image, have no fault", async () => {
  const alone = { ...app, labels: recreate, container_name: "shop", network_mode: "host" };
  const depends_on = { migrate: { condition: "service_completed_successfully" } };
  const migrate = { image: "postgres:17", container_name: "shop-migrate" };
  const model = modelWith({ app: { ...alone, depends_on }, migrate, seed: { image: "x", restart: "no" } });
  assert.deepEqual(await serviceFaults(model), []);
});

function modelWith(services: ComposeModel["services"]): ComposeModel {
  return { ...good, services: { ...good.services, ...services } };
}

function serviceFaults(model: ComposeModel): Promise<readonly Fault[]> {
  return faultsOf("services", {
    compose: async () => ({ kind: "model", version: "2.40.0", model, unset: [] }),
  });
}

test("services: .env and .git in an image that gets all of the checkout are excluded by the command", async (t) => {
  const context = temporaryDirectory(t);
  const write = (name: string, text: string) => writeFileSync(join(context, name), text);
  mkdirSync(join(context, ".git"));
  write(".env", "SECRET=1\n");
  const build = { context, dockerfile: "Dockerfile" };
  const restart = "always";
  const model = modelWith({
    web: { build, restart },
    worker: { build, restart },
    far: { build: { context: "https://x/y.git" }, restart },
  });
  const found = () =>
    faultsOf("services", { compose: async () => ({ kind: "model", version: "2.40.0", model, unset: [] }) });
  for (const [dockerfile, isWhole] of [
    ["FROM x\nCOPY . /app\n", true],
    ["FROM x\nCOPY --chown=1:1 --link ./ ./\n", true],
    ['FROM x\nADD [".", "/app"]\n', true],
    ["FROM x\n  copy * /app\n", true],
    ["FROM go AS build\nCOPY . .\nFROM scratch\nCOPY --from=build /app /app\n", false],
    ["FROM go AS go\nCOPY . .\nFROM --platform=linux/arm64 go AS test\nRUN true\nfrom Go\nRUN true\n", true],
    ["FROM go AS Web\nCOPY . .\nFROM x AS later\n", false],
    ["FROM x\nCOPY --from=build . /app\nCOPY ./src package.json ./\nCOPY .npmrc .\n", false],
  ] as const) {
    write("Dockerfile", dockerfile);
    const [fault, ...others] = await found();
    assert.deepEqual([/worker gets \.env and \.git,/.test(fault?.text ?? ""), others], [isWhole, []]);
  }
  write("Dockerfile", "FROM go AS Web\nCOPY . .\nFROM x AS later\n");
  const ofTarget = (target: string) =>
    findExposedFiles({ web: { build: Object({ ...build, target }) } }).length;
  assert.deepEqual(["web", "0", "later", "missing"].map(ofTarget), [1, 1, 0, 0]);
  write("Dockerfile", "FROM x\nCOPY . .\n");
  for (const [ignored, left] of [
    [".git\n.env\n", ""],
    ["/.git/\n**/.env*\n", ""],
    [".*\n", ""],
    ["*\n!src\n", ""],
    ["./.env\n./.git/\n", ""],
    [".git\n.env\n!.env\n", ".env"],
    ["!.git\n.*\n!/.env*\n", ".env"],
    ["**/.git/**\n", ".env"],
    ["*.env\n# .git\n", ".git"],
    ["node_modules\n", ".env and .git"],
  ] as const) {
    write(".dockerignore", ignored);
    const said = (await found()).map(({ text }) => /gets (.+?),/.exec(text)?.[1]).join();
    assert.equal(said, left, ignored);
  }
  const [fault] = await found();
  execFileSync("sh", ["-ec", fault?.command ?? ""]);
  assert.deepEqual(await found(), []);
  assert.match(readFileSync(join(context, ".dockerignore"), "utf8"), /^node_modules\n\n\.env\n\.git\n$/);
});

const server = { files: serverFilesAt("/etc/hotpush"), state: serverStateAt("/srv/state"), env: {} };
const up = "docker compose --project-directory /etc/hotpush up --detach --wait";
const installed = `hotpush:${readVersion()}`;

/** The containers that are there, with their image, and the severity, first word and command of each fault. */
for (const [what, services, image, faults] of [
  ["that run the installed version are right", ["caddy", "front", "run"], installed, []],
  ["that are missing are created", ["caddy", "front"], installed, [["problem", "run", up]]],
  [
    "of another version are updated",
    ["caddy", "front", "run"],
    "hotpush:0",
    [["warning", "hotpush:0", "hotpush upgrade"]],
  ],
] as const)
  test(`containers: those ${what}`, async () => {
    const get = async (path: string) => {
      const service = /^\/containers\/(\w+)\/json$/.exec(path)?.[1] ?? "";
      const Config = {
        Image: service === "caddy" ? "caddy:2" : image,
        Labels: { "com.docker.compose.service": service },
      };
      const one = { Id: service, Name: `/hotpush-${service}-1`, State: { Status: "running" }, Config };
      return Buffer.from(JSON.stringify(service === "" ? services.map((Id) => ({ Id })) : one));
    };
    const versions = { kind: "answers", version: "28", apiVersion: "1.51", imagePaths: ["/none"] } as const;
    const engine = async () => ({ ...versions, engine: { get } as unknown as Engine });
    const found = await faultsOf("containers", { engine }, server);
    assert.deepEqual(
      found.map(({ severity, text, command }) => [severity, text.split(" ")[0], command]),
      faults,
    );
  });

/** The version of deployments, that of the prompt, that of an old container, and the number of faults. */
for (const [own, prompt, started, faults] of [
  ["2.40.3", "2.29.3", "2.40.0", 0],
  ["2.40.3", "2.40.3", "2.24.6", 0],
  ["2.40.3", "", "5.1.0", 0],
  ["2.40.3", "5.1.0", "2.40.3", 1],
  ["2.40.3", "5.2.0", "2.26.1", 1],
  ["5.0.1", "2.40.3", "2.40.3", 2],
  ["5.0.1", "5.0.1", "5.0.1", 1],
] as const)
  test(`compose: ${own} with "${prompt}" at the prompt and a container of ${started} has ${faults} faults`, async () => {
    const get = async (path: string) => {
      const Labels = { "com.docker.compose.version": started };
      const one = { Id: "1", Name: "/shop-web-1", State: { Status: "running" }, Config: { Labels } };
      return Buffer.from(JSON.stringify(path.startsWith("/containers/json") ? [{ Id: "1" }] : one));
    };
    const versions = { kind: "answers", version: "28", apiVersion: "1.51", imagePaths: ["/none"] } as const;
    const settings = readSettings({ HOTPUSH_MACHINE_COMPOSE: prompt }, "/nonexistent");
    const found = await faultsOf(
      "compose",
      {
        settings,
        engine: async () => ({ ...versions, engine: { get } as unknown as Engine }),
        compose: async () => ({ kind: "model", version: own, model: good, unset: [] }),
      },
      server,
    );
    assert.deepEqual(
      found.map(({ severity }) => severity),
      Array(faults).fill("warning"),
    );
  });

test("a project's checks run with the secrets of its script", () => {
  const settings = { secrets: { current: { reveal: () => "" } } };
  const project = { settings, scriptSecrets: { TOKEN: "x" } };
  const reading = { name: "shop", faults: [], warnings: [], project };
  const context = makeDoctorContext(
    readSettings({}, "/nonexistent"),
    null,
    server,
    reading as unknown as Parameters<typeof makeDoctorContext>[3],
  );
  assert.equal(context.scriptEnv.TOKEN, "x");
});

test("compose: a variable that is not set is named", async () => {
  const found = await faultsOf("compose", {
    compose: async () => ({
      kind: "model",
      version: "2.40.0",
      model: modelWith({ app }),
      unset: ["GREETING"],
    }),
  });
  assert.deepEqual(
    found.map(({ severity, change }) => [severity, change]),
    [["warning", "GREETING=… in .env"]],
  );
});

test("compose: a build context that is missing costs a service with an image nothing for now", async () => {
  const build = { context: "/nonexistent/app", additional_contexts: { base: "docker-image://alpine" } };
  const { image: _, ...unnamed } = app;
  for (const [service, severity] of [
    [unnamed, "problem"],
    [app, "warning"],
  ] as const) {
    const model = modelWith({ app: { ...service, build } });
    const compose = async () => ({ kind: "model", version: "2.40.0", model, unset: [] }) as const;
    const found = await faultsOf("compose", { compose });
    assert.deepEqual(
      found.map(({ severity, missing }) => [severity, missing]),
      [[severity, "/nonexistent/app"]],
    );
    assert.equal(unmountedFault(found), undefined, "the machine lacks it too");
  }
});

test("compose: a file that compose cannot read in run, and the machine has, is told from all else", async (t) => {
  const file = join(temporaryDirectory(t), "app.env");
  const said = (...lines: readonly string[]) =>
    faultsOf("compose", { compose: async () => ({ kind: "invalid", version: "2.40.0", lines }) });
  const found = await said(`env file ${file} not found: stat ${file}: no such file or directory`);
  assert.deepEqual([found[0]?.missing, unmountedFault(found)], [file, undefined]);
  writeFileSync(file, "A=1\n");
  assert.equal(unmountedFault(found), found[0]);
  assert.equal((await said("services.web.image must be a string"))[0]?.missing, null);
});
