import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { childEnvironment } from "../../src/runner/script.ts";
import { deliver, githubPush, randomCommit, testSecret } from "../harness/delivery.ts";
import { readProcesses } from "../harness/processes.ts";
import { createTestRunner } from "../harness/runs.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const alwaysThere =
  "DEBIAN_FRONTEND DEPLOY_BRANCH DEPLOY_COMMIT DEPLOY_ID DEPLOY_LOG DEPLOY_REF DEPLOY_TRIGGER GIT_ASKPASS GIT_NO_REPLACE_OBJECTS GIT_SSH_COMMAND GIT_TERMINAL_PROMPT PATH REPO_PATH SSH_ASKPASS";
/** A shell sets these by itself. */
// Node itself hands the last one on while the coverage of the tests is measured.
const shellsOwn = new Set(["PWD", "OLDPWD", "SHLVL", "_", "NODE_V8_COVERAGE"]);

test("the script sees the allow-list, its deployment, and nothing else", async (t) => {
  const passed = {
    HOME: "/root",
    LANG: "C.UTF-8",
    LC_ALL: "C.UTF-8",
    TZ: "UTC",
    DOCKER_HOST: "unix:///run/docker.sock",
    COMPOSE_PROJECT_NAME: "app",
    GIT_CONFIG_COUNT: "0",
    SSH_AUTH_SOCK: "/run/ssh",
    https_proxy: "http://proxy",
  };
  const kept = {
    WEBHOOK_SECRET: testSecret,
    WEBHOOK_SECRET_PREVIOUS: testSecret,
    WEBHOOK_SECRET_FILE: "/run/secret",
    WEBHOOK_PORT: "9000",
    AWS_SECRET_ACCESS_KEY: "key",
    NODE_OPTIONS: "--max-old-space-size=100",
    LD_PRELOAD: "",
    DOCKERFILE: "x",
  };
  const { PATH } = process.env;
  const runner = createTestRunner(t, {
    env: { PATH, ...passed, ...kept, API_KEY: "wanted" },
    deployEnv: ["API_KEY", "NOT_SET"],
  });
  await runner.run("#!/bin/sh\nenv\n");
  const names = namesIn(runner.lines);
  assert.deepEqual(names, [...alwaysThere.split(" "), ...Object.keys(passed), "API_KEY"].sort());
});

test("no child of the service has the secret, not even a long-lived one", async (t) => {
  const script = "#!/bin/sh\nwhile [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done\n";
  const first = await startService(t, { script, env: { WEBHOOK_SECRET_PREVIOUS: `${testSecret}-old` } });
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "runner.waiting");
  await deliver(first.url, githubPush());
  await first.log.waitFor(({ event }) => event === "deployment.started");
  const pids = await until("both have children", () => {
    const children = [first, second].map(({ child }) =>
      readProcesses().filter(({ parent }) => parent === child.pid),
    );
    return children.every(({ length }) => length > 0) && children.flat().map(({ pid }) => pid);
  });
  for (const pid of pids) {
    const environ = readFileSync(`/proc/${pid}/environ`, "latin1");
    assert.ok(!environ.includes(testSecret), `process ${pid} has the secret in its environment`);
  }
});

test("the script has its deployment in arguments and environment, and no input", async (t) => {
  const script = 'pwd; readlink /proc/$$/fd/0; echo "$# $1 $2"; env | grep -E "^(DEPLOY|REPO)_" | sort';
  const service = await startService(t, { script: `#!/bin/sh\n${script}\n` });
  const after = randomCommit();
  await deliver(service.url, githubPush({ ref: "refs/heads/master", after }));
  await service.log.waitForEnding(1);
  assert.deepEqual(service.log.outputOf(1), [
    service.repoPath,
    "/dev/null",
    `2 refs/heads/master ${after}`,
    "DEPLOY_BRANCH=master",
    `DEPLOY_COMMIT=${after}`,
    "DEPLOY_ID=1",
    `DEPLOY_LOG=${join(process.env.TMPDIR ?? "/tmp", `hotpush-${process.getuid?.()}`, "deploy-1.log")}`,
    "DEPLOY_REF=refs/heads/master",
    "DEPLOY_TRIGGER=push",
    `REPO_PATH=${service.repoPath}`,
  ]);
});

test("only the commit id of a payload full of shell tricks reaches the script", async (t) => {
  const service = await startService(t, { script: '#!/bin/sh\necho "$*"\nenv\n' });
  const trick = "$(touch canary);`touch canary`|touch canary\n--upload-pack=touch canary";
  const after = randomCommit();
  const push = githubPush({
    after,
    repository: `octo/${trick}`,
    pusher: { name: trick },
    head_commit: { message: trick, url: trick },
    compare: trick,
  });
  await deliver(service.url, push);
  await service.log.waitForEnding(1);
  assert.ok(!service.log.outputOf(1).join("\n").includes("canary"));
  assert.ok(!existsSync(join(service.repoPath, "canary")));
});

test("a project's secrets replace nothing that is passed, and nothing else replaces them", () => {
  const scriptSecrets = { API_TOKEN: "the project's", PATH: "/tmp", WEBHOOK_SECRET_OLD: "x" };
  const env = { API_TOKEN: "the service's own", PATH: "/bin" };
  const passed = childEnvironment({ env, deployEnv: [], repoPath: "/srv/shop", scriptSecrets });
  assert.equal(passed.API_TOKEN, "the project's");
  assert.equal(passed.PATH?.split(":")[0], "/bin");
  assert.equal(Object.hasOwn(passed, "WEBHOOK_SECRET_OLD"), false);
});

function namesIn(lines: readonly string[]): string[] {
  return lines
    .map((line) => line.slice(0, line.indexOf("=")))
    .filter((name) => !shellsOwn.has(name))
    .sort();
}
