import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import type { ProjectSettings } from "../src/config/project.ts";
import { loadConfig } from "../src/config/service.ts";
import { variables } from "../src/config/settings.ts";
import { ProblemError } from "../src/problems.ts";

const secret = "3b1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";
const good = { WEBHOOK_SECRET: secret, HOME: "/home/octo" };

test("with only a secret, every value is its default", () => {
  const { service, project, warnings } = loadConfig(good);
  assert(project);
  const { secrets, trustedProxies, metricsNetworks, ...values } = { ...service, ...project };
  assert.deepEqual(values, {
    port: 9000,
    host: "0.0.0.0",
    bodyLimitBytes: 25 * 1024 ** 2,
    repoPath: "/app",
    repository: null,
    branch: null,
    allowedSigners: null,
    statePath: "/home/octo/.local/state/hotpush",
    projectsPath: null,
    secretsPath: null,
    maxRunning: 1,
    spoolPath: "/home/octo/.local/state/hotpush/spool",
    frontSocket: "/home/octo/.local/state/hotpush/front.sock",
    pagePort: 9_001,
    pageUrl: null,
    isBadgePublic: false,
    serverPath: null,
    serverStatePath: null,
    deployTimeoutMs: 30 * 60_000,
    deploySilenceMs: 10 * 60_000,
    deployEnv: [],
    deployPaths: [],
    deployAfter: null,
    deployImages: null,
    catchUpIntervalMs: 5 * 60_000,
    notify: { targets: [], on: "failures" },
    commitStatus: null,
    shutdownGraceMs: 5_000,
    logLevel: "info",
  });
  assert.equal(secrets.current.reveal(), secret);
  assert.equal(secrets.previous, null);
  assert.deepEqual(trustedProxies.rules, []);
  assert.deepEqual(metricsNetworks.rules, []);
  assert.deepEqual(warnings, []);
});

const accepted: readonly [keyof typeof variables, string, unknown][] = [
  ["WEBHOOK_PORT", "0", 0],
  ["WEBHOOK_PORT", " 8080 ", 8080],
  ["WEBHOOK_HOST", "::1", "::1"],
  ["WEBHOOK_BODY_LIMIT", "1KiB", 1024],
  ["REPO_PATH", "/srv/app/", "/srv/app"],
  ["REPOSITORY", "group/sub/app.js", "group/sub/app.js"],
  ["BRANCH", " master ", "master"],
  ["STATE_PATH", "/var/lib/x", "/var/lib/x"],
  ["DEPLOY_TIMEOUT", "24h", 86_400_000],
  ["DEPLOY_SILENCE", "0", 0],
  ["DEPLOY_ENV", "TOKEN, HEALTH_URL", ["TOKEN", "HEALTH_URL"]],
  ["CATCH_UP_INTERVAL", "90s", 90_000],
  ["SHUTDOWN_GRACE", "500ms", 500],
  ["LOG_LEVEL", "debug", "debug"],
];

for (const [name, text, value] of accepted) {
  test(`${name}=${text} is taken`, () => {
    assert.deepEqual(variables[name].read(text.trim()), value);
    assert.doesNotThrow(() => loadConfig({ ...good, [name]: text }));
  });
}

const refused: Readonly<Partial<Record<keyof typeof variables, readonly string[]>>> = {
  WEBHOOK_PORT: ["-1", "65536", "9000.5", "0x50", "80a", "tcp://10.0.0.1:9000", "1e3", "٣"],
  WEBHOOK_HOST: ["example.com", "300.1.1.1", "*"],
  WEBHOOK_BODY_LIMIT: ["25", "0 MiB", "51 MiB", "1023B", "1 GB", "25MB", "-1 MiB"],
  TRUSTED_PROXIES: ["proxy", "10.0.0.0/33", "10.0.0.1-9", "*"],
  REPO_PATH: ["app", "./app", "~/app"],
  REPOSITORY: ["app", "octo/", "/app", "octo/app?x", "https://github.com/octo/app"],
  BRANCH: ["develop", "Main", "refs/heads/main", "main,master"],
  ALLOWED_SIGNERS: ["signers", "~/signers"],
  STATE_PATH: ["state"],
  SECRETS_PATH: ["secrets"],
  MAX_RUNNING: ["0", "65", "many"],
  DEPLOY_TIMEOUT: ["30", "0", "0s", "10 s", "25h", "1d", "-5m", "1.5h", "999999999h", "30M", "30m30s"],
  DEPLOY_SILENCE: ["10", "0s", "999ms", "25h", "never"],
  DEPLOY_ENV: ["1X", "A-B", "WEBHOOK_SECRET", "OK,WEBHOOK_SECRET_PREVIOUS", "A=B"],
  CATCH_UP_INTERVAL: ["5", "never", "500ms", "25h"],
  SHUTDOWN_GRACE: ["5", "NaN", "Infinity"],
  LOG_LEVEL: ["INFO", "verbose", "30"],
};

for (const [name, texts] of Object.entries(refused)) {
  test(`another value of ${name} is refused, never read as something else`, () => {
    for (const text of texts) {
      const [line = "", ...others] = faultsOf({ ...good, [name]: text });
      assert.match(line, new RegExp(`^${name} is .+; expected .+\\.$`));
      assert.deepEqual(others, []);
    }
  });
}

test("a secret cannot be printed by accident", () => {
  const config = loadConfig(good).project as ProjectSettings;
  for (const printed of [
    JSON.stringify(config),
    inspect(config, { depth: 9 }),
    String(config.secrets.current),
  ]) {
    assert.doesNotMatch(printed, new RegExp(secret));
  }
});

test("the configuration cannot be changed", () => {
  assert.ok(Object.isFrozen(loadConfig(good).service) && Object.isFrozen(loadConfig(good).project));
});

function faultsOf(env: Record<string, string>): string[] {
  try {
    loadConfig(env);
  } catch (error) {
    assert.ok(error instanceof ProblemError);
    assert.equal(error.problem.code, "configuration_invalid");
    return error.problem.detail.split("\n");
  }
  assert.fail("nothing was refused");
}

test("with PROJECTS_PATH the settings of a project are refused in the environment", () => {
  const lines = faultsOf({
    PROJECTS_PATH: "/etc/hotpush/projects",
    REPO_PATH: "/srv/shop",
    WEBHOOK_SECRET_FILE: "/s",
  });
  assert.deepEqual(
    lines.map((line) => line.split(" ")[0]),
    ["REPO_PATH", "WEBHOOK_SECRET_FILE"],
  );
  const { service, project } = loadConfig({ PROJECTS_PATH: "/etc/hotpush/projects" });
  assert.deepEqual(
    [service.projectsPath, service.secretsPath, project],
    ["/etc/hotpush/projects", "/etc/hotpush/secrets", null],
  );
});
