import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../src/config/service.ts";
import type { variables } from "../src/config/settings.ts";
import { ProblemError } from "../src/problems.ts";

const secret = "3b1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";
const good = { WEBHOOK_SECRET: secret, HOME: "/home/octo" };

/** Values that are taken, and values that are refused, separated by spaces. */
const texts: Readonly<Partial<Record<keyof typeof variables, readonly [taken: string, refused: string]>>> = {
  WEBHOOK_PORT: ["0 8080", "-1 65536 9000.5 0x50 80a tcp://10.0.0.1:9000 1e3 ٣"],
  WEBHOOK_HOST: ["::1 localhost", "example.com 300.1.1.1 *"],
  WEBHOOK_BODY_LIMIT: [
    "1KiB 50MiB",
    "25 0MiB 51MiB 1023B -1MiB 1.5MiB 1e4KiB 25mib 25MB 25M 1TiB B 9999999999B ２5MiB",
  ],
  TRUSTED_PROXIES: [
    "10.0.0.0/8,::1",
    "127.0.0.1,proxy 10.0.0.0/33 ::1/129 10.0.0.0/ 10.0.0.0/8/8 10.0.0.0/-1 10.0.0 010.0.0.1 fe80::1%eth0 private_ranges/8 *",
  ],
  REPO_PATH: ["/srv/app/", "app ./app ~/app"],
  REPOSITORY: ["group/sub/app.js", "app octo/ /app octo/app?x https://github.com/octo/app"],
  BRANCH: ["main master", "develop Main refs/heads/main main,master"],
  ALLOWED_SIGNERS: ["", "signers ~/signers"],
  STATE_PATH: ["/var/lib/x", "state"],
  SECRETS_PATH: ["/etc/x", "secrets"],
  MAX_RUNNING: ["1 64", "0 65 many"],
  DEPLOY_TIMEOUT: [
    "1s 24h",
    "30 0 0s 25h -1s 1.5h 1,5h 1e3s 0x1s 1S 1sec 1d s 1m30s 86400001ms 999999999h １s 1ss",
  ],
  DEPLOY_SILENCE: ["0 1s", "10 0s 999ms 25h never"],
  DEPLOY_ENV: ["TOKEN,HEALTH_URL", "1X A-B WEBHOOK_SECRET OK,WEBHOOK_SECRET_PREVIOUS A=B"],
  DEPLOY_PATHS: ["apps/shop/**,!**/*.md", ":(exclude)a !:/a :!a /etc ! !!a a/../b .."],
  DEPLOY_AFTER: ["", "a,,b a,"],
  CATCH_UP_INTERVAL: ["0 90s", "5 never 500ms 25h"],
  SHUTDOWN_GRACE: ["500ms", "5 NaN Infinity"],
  LOG_LEVEL: ["debug", "INFO verbose 30"],
};

test("a value of another form is refused, never read as something else", () => {
  for (const [name, [taken, refused]] of Object.entries(texts)) {
    for (const text of taken.split(" ").filter(Boolean))
      assert.doesNotThrow(() => loadConfig({ ...good, [name]: ` ${text} ` }), name);
    for (const text of refused.split(" ")) {
      const [line = "", ...others] = faultsOf({ ...good, [name]: text });
      assert.match(line, new RegExp(`^${name} is .+; expected .+\\.$`));
      assert.deepEqual(others, []);
    }
  }
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
