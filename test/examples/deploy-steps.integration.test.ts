import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { listenHere } from "../harness/listen.ts";
import { main, makeExample } from "./project.ts";

const compose = { "compose.yaml": "services: {}\n" };
const otherRestart = { "restart.sh": "#!/bin/sh\nexit 9\n" };
const composeCalls = "compose up -d --build --wait --remove-orphans";
const pruneCall = "image prune --force --filter label=com.docker.compose.project=shop";

interface Case {
  readonly files?: Record<string, string>;
  /** The calls of docker that fail. */
  readonly dockerFails?: string;
  /** The call of hotpush that fails; without it, no hotpush is in the PATH. */
  readonly hotpushFails?: string;
  readonly code?: number;
  readonly says?: RegExp;
  /** The calls of docker after those that ask for its version. */
  readonly docker?: readonly string[];
  readonly hotpush?: readonly string[];
}

const cases: Readonly<Record<string, Case>> = {
  "a compose file has compose build, replace and wait, and only this project's images pruned": {
    files: { ...compose, ...otherRestart },
    says: /^==> Pull\n[\s\S]*^==> Build and replace\n[\s\S]*^==> Prune\n[\s\S]*^==> Health check\n[\s\S]*^==> Done/m,
    docker: [composeCalls, "compose config", pruneCall],
  },
  "with a stack file, hotpush in the PATH replaces and prunes, and docker replaces nothing": {
    files: { "docker-stack.yml": "services: {}\n" },
    hotpushFails: "none",
    hotpush: ["rollout --prune"],
    docker: [],
  },
  "a compose file that only .env names is replaced by compose": {
    files: { ...otherRestart, ".env": 'A=1\n  export COMPOSE_FILE = "ops/shop.yaml"\n' },
    says: /^==> Build and replace$/m,
  },
  "a stack file without hotpush in the PATH fails, says why, and leaves docker alone": {
    files: { "stack.yaml": "services: {}\n" },
    code: 1,
    says: /^FAILED: There is a stack file, which compose cannot roll out, but no hotpush in the/m,
    docker: [],
  },
  "a roll-out that fails fails the deployment, and nothing is pruned": {
    files: compose,
    hotpushFails: "rollout",
    code: 17,
    hotpush: ["rollout --prune"],
  },
  "a container that does not become healthy fails the deployment, and nothing is pruned": {
    files: { "docker-compose.yml": "services: {}\n" },
    dockerFails: "compose up*",
    code: 17,
    docker: [composeCalls],
  },
  "a restart.sh that fails ends the deployment with its exit code": {
    files: { "restart.sh": "#!/bin/bash\necho 'port in use' >&2\nexit 7\n" },
    code: 7,
    says: /==> Restart\nport in use\n$/,
  },
  "a failing prune does not fail the deployment": {
    files: compose,
    dockerFails: "image prune*",
    says: /Could not prune; going on\./,
  },
  "a missing docker compose is a sentence with what to do": {
    files: compose,
    dockerFails: "compose version",
    code: 1,
    says: /FAILED: There is a compose or stack file, but no docker compose\. Install it: https:/,
  },
  "a docker that does not answer is a sentence with what to do": {
    files: compose,
    dockerFails: "version *",
    code: 1,
    says: /FAILED: Docker does not answer\. Start it \(systemctl start docker\), or let this user/,
  },
};

for (const [claim, { files = {}, dockerFails, hotpushFails, code = 0, ...wanted }] of Object.entries(cases))
  test(claim, async (t) => {
    const example = makeExample(t, files);
    // There is no engine here.
    const config = "printf 'name: shop\\nservices:\\n  web:\\n    name: other\\n'";
    const fails = `[[ "$*" != ${(dockerFails ?? "none").replaceAll(" ", "\\ ")} ]] || exit 17`;
    example.record("docker", `${fails}\n[[ "$*" != 'compose config' ]] || ${config}`);
    if (hotpushFails !== undefined) example.record("hotpush", `[ "$1" != ${hotpushFails} ] || exit 17`);
    const ended = await example.deployHead();
    assert.equal(ended.code, code, ended.output);
    assert.match(ended.output, wanted.says ?? /./);
    const calls = example.calls("docker").filter((call) => !/^(?:compose )?version/.test(call));
    if (wanted.docker) assert.deepEqual(calls, wanted.docker);
    if (wanted.hotpush) assert.deepEqual(example.calls("hotpush"), wanted.hotpush);
  });

test("the health check asks until the answer is 2xx", async (t) => {
  const example = makeExample(t);
  const asked = { HEALTH_URL: await answer(t, [503, 404, 204]) };
  const output = await example.deployed([main, example.head()], asked);
  assert.match(output, /error: 503\ncurl: .* error: 404\n==> Done/);
});

test("a health check that stays bad fails the deployment and says why", async (t) => {
  const asked = { HEALTH_URL: await answer(t, [503]), HEALTH_TIMEOUT: "1" };
  const { code, output } = await makeExample(t).deployHead(asked);
  assert.equal(code, 1);
  assert.match(output, /error: 503\nFAILED: Not healthy after 1 s, for the reason above\.\n$/);
  const example = makeExample(t, { "healthcheck.sh": "#!/bin/sh\necho 'no database'\nexit 1\n" });
  const own = await example.deployHead({ HEALTH_TIMEOUT: "0" });
  assert.equal(own.code, 1);
  assert.match(own.output, /\nno database\nFAILED: Not healthy after 0 s, for the reason above\.\n$/);
});

test("restart.sh runs if there is no compose file, and every line reaches output and log", async (t) => {
  const example = makeExample(t, {
    "restart.sh": '#!/bin/bash\nfor i in {1..5000}; do echo "line $i"; done\necho "to stderr" >&2\n',
    "healthcheck.sh": "#!/bin/bash\nprintf 'no newline at its end, '\n",
  });
  const output = await example.deployed([main, example.head()]);
  assert.equal(output.match(/^line \d+$/gm)?.length, 5000);
  assert.match(output, /line 5000\nto stderr\n==> Health check\nno newline at its end, ==> Done/);
  assert.equal(example.read("own.log"), output);
  assert.deepEqual(readdirSync(join(example.root, "tmp")), []);
});

test("what restart.sh leaves running holds neither the script nor the deployment's lock", async (t) => {
  const example = makeExample(t, { "restart.sh": '#!/bin/bash\nsleep 120 &\necho $! >"$HOME/app-pid"\n' });
  const lockPath = join(example.root, "lock");
  const argv = [lockPath, join(example.repoPath, "deploy.sh"), main, example.head()];
  const [code] = await once(spawn("flock", argv, { env: example.env, stdio: "ignore" }), "close");
  const pid = Number(example.read("app-pid"));
  t.after(() => process.kill(pid));
  assert.equal(code, 0);
  process.kill(pid, 0);
  const [lockCode] = await once(spawn("flock", ["--nonblock", lockPath, "true"]), "close");
  assert.equal(lockCode, 0);
});

test("the script finishes when nobody reads its output any more", async (t) => {
  const waiting = 'until [[ -e "$HOME/go" ]]; do sleep 0.02; done\nfor i in {1..500}; do echo "$i"; done\n';
  const example = makeExample(t, { "healthcheck.sh": `#!/bin/bash\n${waiting}` });
  const { repoPath, env, logPath, root } = example;
  const child = spawn(join(repoPath, "deploy.sh"), [main, example.head()], {
    env: { ...env, DEPLOY_LOG: logPath },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  child.stdout.destroy();
  await once(child.stdout, "close");
  writeFileSync(join(root, "go"), "");
  const [, signal] = await once(child, "exit");
  assert.equal(signal, null);
  assert.match(example.read("own.log"), /\n500\n==> Done: main is at .*\n$/);
});

/** Serves the statuses in turn, the last one for good. @returns the address */
async function answer(t: TestContext, statuses: readonly number[]): Promise<string> {
  let count = 0;
  const server = createServer((_request, response) => {
    response.writeHead(statuses[Math.min(count, statuses.length - 1)] ?? 500).end();
    count += 1;
  });
  return `http://127.0.0.1:${await listenHere(t, server)}/`;
}
