import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deploy, git, makeProject, type Project, putOnPath } from "./project.ts";

test("restart.sh runs where there is no compose file, and every line reaches output and log", async (t) => {
  const project = await makeProject(t, {
    "restart.sh": '#!/bin/bash\nfor i in {1..5000}; do echo "line $i"; done\necho "to stderr" >&2\n',
    "healthcheck.sh": "#!/bin/bash\nprintf 'no newline at its end, '\n",
  });
  const { code, output, log } = await deployHead(project);
  assert.equal(code, 0, output);
  assert.equal(output.match(/^line \d+$/gm)?.length, 5000);
  assert.match(output, /line 5000\nto stderr\n==> Health check\nno newline at its end, ==> Done/);
  assert.equal(log, output);
  assert.deepEqual(await readdir(join(project.root, "tmp")), []);
});

test("a restart.sh that fails ends the deployment with its exit code", async (t) => {
  const project = await makeProject(t, { "restart.sh": "#!/bin/bash\necho 'port in use' >&2\nexit 7\n" });
  const { code, output, log } = await deployHead(project);
  assert.equal(code, 7);
  assert.ok(output.endsWith("==> Restart\nport in use\n"), output);
  assert.equal(log, output);
});

test("what restart.sh leaves running holds neither the script nor the deployment's lock", async (t) => {
  const project = await makeProject(t, {
    "restart.sh": '#!/bin/bash\nsleep 120 &\necho $! >"$APP_PID"\necho started\n',
  });
  const pidPath = join(project.root, "app-pid");
  const lockPath = join(project.root, "lock");
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  const child = spawn("flock", [lockPath, join(project.checkout, "deploy.sh"), "refs/heads/main", head], {
    env: { ...project.env, APP_PID: pidPath },
    stdio: "ignore",
    timeout: 20_000,
  });
  const [code] = await once(child, "close");
  const pid = Number(await readFile(pidPath, "utf8"));
  t.after(() => process.kill(pid));
  assert.equal(code, 0);
  process.kill(pid, 0);
  const [lockCode] = await once(spawn("flock", ["--nonblock", lockPath, "true"]), "close");
  assert.equal(lockCode, 0);
});

test("the script finishes when nobody reads its output any more", async (t) => {
  const project = await makeProject(t, {
    "healthcheck.sh":
      '#!/bin/bash\nuntil [[ -e "$GO" ]]; do sleep 0.02; done\nfor i in {1..500}; do echo "$i"; done\n',
  });
  const goPath = join(project.root, "go");
  const logPath = join(project.root, "own.log");
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  const child = spawn(join(project.checkout, "deploy.sh"), ["refs/heads/main", head], {
    env: { ...project.env, GO: goPath, DEPLOY_LOG: logPath },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  child.stdout.destroy();
  await once(child.stdout, "close");
  await writeFile(goPath, "");
  const [, signal] = await once(child, "exit");
  assert.equal(signal, null);
  assert.match(await readFile(logPath, "utf8"), /\n500\n==> Done: main is at .*\n$/);
});

test("a compose file has compose build, replace and wait, and only this project's images pruned", async (t) => {
  const project = await makeProject(t, {
    "compose.yaml": "services: {}\n",
    "restart.sh": "#!/bin/sh\nexit 9\n",
  });
  await putDocker(project);
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  assert.deepEqual(output.match(/^==> [\w ]+/gm), [
    "==> Pull",
    "==> Build and replace",
    "==> Prune",
    "==> Health check",
    "==> Done",
  ]);
  const calls = (await readFile(join(project.root, "docker-calls"), "utf8")).trim().split("\n");
  assert.deepEqual(calls.slice(2), [
    "compose up -d --build --wait --remove-orphans",
    "compose config",
    "image prune --force --filter label=com.docker.compose.project=shop",
  ]);
});

test("where hotpush is in the PATH, it replaces and prunes, and compose replaces nothing", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
  await putDocker(project);
  await putHotpush(project);
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  const calls = await readFile(join(project.root, "hotpush-calls"), "utf8");
  assert.equal(calls, "rollout\nprune\n");
  const dockerCalls = await readFile(join(project.root, "docker-calls"), "utf8");
  assert.ok(!dockerCalls.includes("compose up"), dockerCalls);
});

test("a roll-out that fails fails the deployment, a prune that fails does not", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
  await putDocker(project);
  await putHotpush(project, "prune");
  const good = await deployHead(project);
  assert.equal(good.code, 0, good.output);
  assert.match(good.output, /Could not prune; going on\./);
  await putHotpush(project, "rollout");
  const bad = await deployHead(project);
  assert.equal(bad.code, 17, bad.output);
  assert.ok(!bad.output.includes("==> Prune"), bad.output);
});

test("a container that does not become healthy fails the deployment, and nothing is pruned", async (t) => {
  const project = await makeProject(t, { "docker-compose.yml": "services: {}\n" });
  await putDocker(project, "compose up*");
  const { code, output } = await deployHead(project);
  assert.equal(code, 17, output);
  assert.ok(!output.includes("==> Prune"), output);
});

test("a failing prune does not fail the deployment", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
  await putDocker(project, "image prune*");
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  assert.match(output, /Could not prune; going on\./);
});

for (const [missing, sentence] of [
  ["compose version", /FAILED: There is a compose file, but no 'docker compose'\. Install it: https:/],
  ["version *", /FAILED: Docker does not answer\. Start it \(systemctl start docker\), or let this user/],
] as const) {
  test(`a docker whose '${missing}' fails is a sentence with what to do`, async (t) => {
    const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
    await putDocker(project, missing);
    const { code, output } = await deployHead(project);
    assert.equal(code, 1);
    assert.match(output, sentence);
  });
}

test("the health check asks until the answer is 2xx", async (t) => {
  const project = await makeProject(t);
  const url = await answer(t, [503, 404, 204]);
  const { code, output } = await deployHead(project, { HEALTH_URL: url });
  assert.equal(code, 0, output);
  assert.match(output, /error: 503\ncurl: .* error: 404\n==> Done/);
});

test("a health check that stays bad fails the deployment and says why", async (t) => {
  const project = await makeProject(t);
  const url = await answer(t, [503]);
  const { code, output } = await deployHead(project, { HEALTH_URL: url, HEALTH_TIMEOUT: "1" });
  assert.equal(code, 1);
  assert.match(output, /error: 503\nFAILED: Not healthy after 1 s, for the reason above\.\n$/);
});

test("a failing healthcheck.sh fails the deployment", async (t) => {
  const project = await makeProject(t, { "healthcheck.sh": "#!/bin/sh\necho 'no database'\nexit 1\n" });
  const { code, output } = await deployHead(project, { HEALTH_TIMEOUT: "0" });
  assert.equal(code, 1);
  assert.match(output, /\nno database\nFAILED: Not healthy after 0 s, for the reason above\.\n$/);
});

async function deployHead(project: Project, env: Record<string, string> = {}) {
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  return deploy(project, ["refs/heads/main", head], env);
}

/** A hotpush that records its arguments, and fails (17) for the command `failing`. */
async function putHotpush(project: Project, failing = "none"): Promise<void> {
  const path = join(project.root, "hotpush-calls");
  await putOnPath(
    project,
    "hotpush",
    `#!/bin/sh\necho "$*" >>'${path}'\n[ "$1" != ${failing} ] || exit 17\n`,
  );
}

/** A docker that records its arguments and fails (17) where they match the pattern; there is no engine here. */
async function putDocker(project: Project, failing = "none"): Promise<void> {
  await putOnPath(
    project,
    "docker",
    `#!/bin/bash
echo "$*" >>'${project.root}/docker-calls'
[[ "$*" != ${failing.replaceAll(" ", "\\ ")} ]] || exit 17
[[ "$*" != 'compose config' ]] || printf 'name: shop\\nservices:\\n  web:\\n    name: other\\n'
`,
  );
}

/** Serves the statuses in turn, the last one for good. @returns the address */
async function answer(t: TestContext, statuses: readonly number[]): Promise<string> {
  let count = 0;
  const server = createServer((_request, response) => {
    response.writeHead(statuses[Math.min(count, statuses.length - 1)] ?? 500).end();
    count += 1;
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return `http://127.0.0.1:${address.port}/`;
}
