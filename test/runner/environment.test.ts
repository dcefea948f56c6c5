import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
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
  const passed =
    "HOME LANG LC_ALL TZ DOCKER_HOST COMPOSE_PROJECT_NAME GIT_CONFIG_COUNT SSH_AUTH_SOCK https_proxy API_KEY";
  const kept =
    "WEBHOOK_SECRET WEBHOOK_SECRET_PREVIOUS WEBHOOK_SECRET_FILE WEBHOOK_PORT AWS_SECRET_ACCESS_KEY NODE_OPTIONS LD_PRELOAD DOCKERFILE";
  const given = `${passed} ${kept}`.split(" ").map((name) => [name, "0"]);
  const runner = createTestRunner(t, {
    env: { ...Object.fromEntries(given), PATH: process.env.PATH },
    deployEnv: ["API_KEY", "NOT_SET"],
  });
  await runner.run("#!/bin/sh\nenv\n");
  const names = runner.lines.map((line) => line.slice(0, line.indexOf("=")));
  assert.deepEqual(
    names.filter((name) => !shellsOwn.has(name)).sort(),
    `${alwaysThere} ${passed}`.split(" ").sort(),
  );
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

test("only the commit id of a payload full of shell tricks reaches the script", async (t) => {
  const script = [
    'pwd; readlink /proc/$$/fd/0; echo "$# $1 $2"',
    'env | grep -E "^(DEPLOY|REPO)_" | sort; env | grep -c canary; ls',
  ];
  const service = await startService(t, { script: `#!/bin/sh\n${script.join("\n")}\n` });
  const trick = "$(touch canary);`touch canary`|touch canary\n--upload-pack=touch canary";
  const after = randomCommit();
  const push = githubPush({
    ref: "refs/heads/master",
    after,
    repository: `octo/${trick}`,
    pusher: { name: trick },
    head_commit: { message: trick, url: trick },
    compare: trick,
  });
  await deliver(service.url, push);
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
    "0",
    "deploy.sh",
  ]);
});

test("a project's secrets replace nothing that is passed, and nothing else replaces them", () => {
  const scriptSecrets = { API_TOKEN: "the project's", PATH: "/tmp", WEBHOOK_SECRET_OLD: "x" };
  const env = { API_TOKEN: "the service's own", PATH: "/bin" };
  const passed = childEnvironment({ env, deployEnv: [], repoPath: "/srv/shop", scriptSecrets });
  assert.equal(passed.API_TOKEN, "the project's");
  assert.equal(passed.PATH?.split(":")[0], "/bin");
  assert.equal(Object.hasOwn(passed, "WEBHOOK_SECRET_OLD"), false);
});
