import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { deployHead, git, makeProject } from "./project.ts";

test("restart.sh runs if there is no compose file, and every line reaches output and log", async (t) => {
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
