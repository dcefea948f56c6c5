import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import type { Argv } from "../../src/platform/run-command.ts";
import { createProjectScript, runSecretCommands } from "../../src/runner/script.ts";
import { testSecret } from "../harness/delivery.ts";
import { readLog } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { createTestRunner, deploymentWith } from "../harness/runs.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

const value = "correct-horse-battery";

const faults: readonly (readonly [argv: Argv, says: RegExp, timeoutMs?: number])[] = [
  [
    ["sh", "-c", `echo ${value}; echo first >&2; echo the vault is sealed >&2; exit 3`],
    /^TOKEN of the secrets file has no value: sh ended with exit code 3: the vault is sealed\. Nothing was run\./,
  ],
  [["sh", "-c", `echo ${value}; exit 3`], /exit code 3: it gave no reason\./],
  [["echo"], /echo printed nothing\./],
  [["no-such-program"], /no-such-program is not installed\./],
  [["/etc/passwd"], /passwd ended with exit code 126: /],
  [["sleep", "300"], /sleep did not end within 0\.3 s\./, 300],
  [["printf", "a\\0b"], /zero byte/],
  [["seq", "20000"], /more than 64 KiB/],
];

test("a command without a value is named, and the script is not started", async (t) => {
  for (const [argv, says, timeoutMs] of faults) {
    const script = place(t, { TOKEN: argv });
    const printed = await runSecretCommands(script, new AbortController().signal, timeoutMs);
    assert.equal(printed.kind, "refused", JSON.stringify(printed));
    assert.equal(printed.problem.code, "secret_unavailable");
    assert.match(printed.problem.detail, says);
    assert.doesNotMatch(printed.problem.detail, new RegExp(value));
  }
  const own = createTestRunner(t, { secretCommands: { TOKEN: ["false"] } });
  writeScript(join(own.repoPath, "deploy.sh"), "#!/bin/sh\ntouch started\n");
  const started = await own.runner.start(deploymentWith(1), new AbortController().signal);
  assert.equal(started.kind === "refused" && started.problem.code, "secret_unavailable");
  assert.equal(existsSync(join(own.repoPath, "started")), false);
});

test("nothing of a push reaches a command: no variable, no file, no shell", async (t) => {
  const seen = join(temporaryDirectory(t), "seen");
  const trap = join(temporaryDirectory(t), "trap");
  const spy = ["sh", "-c", `{ env; echo "at $PWD"; echo "got $(cat)"; } >${seen}; echo ${value}`] as const;
  const own = createTestRunner(t, { secretCommands: { SPY: spy } });
  const named = { subject: `$(touch ${trap})`, author: "mallory", pusher: "mallory" };
  const deployment = { ...deploymentWith(1), ...named };
  writeScript(join(own.repoPath, "deploy.sh"), "#!/bin/sh\n");
  const started = await own.runner.start(deployment, new AbortController().signal);
  assert.equal(started.kind, "started");
  await started.run.ended;
  const text = readFileSync(seen, "utf8");
  assert.match(text, /^at \/$/m);
  assert.match(text, /^got $/m);
  for (const part of ["DEPLOY_", "WEBHOOK_SECRET", deployment.commit, "mallory", trap, testSecret])
    assert.ok(!text.includes(part), part);
  // What a shell would do with an argument, and a program of the checkout.
  const literal = `; touch ${trap} && $(touch ${trap}) | $HOME *`;
  writeScript(join(own.repoPath, "evil"), `#!/bin/sh\ntouch ${trap}\n`);
  const script = place(t, { LITERAL: ["printf", "%s", literal] }, own.repoPath);
  const printed = await runSecretCommands(script, new AbortController().signal);
  assert.deepEqual(printed, { kind: "printed", values: { LITERAL: literal } });
  const evil = place(t, { EVIL: ["./evil"] }, own.repoPath);
  assert.equal((await runSecretCommands(evil, new AbortController().signal)).kind, "refused");
  assert.equal(existsSync(trap), false);
});

test("a file that age has encrypted is decrypted with a key of the owner", needs("age"), async (t) => {
  const directory = temporaryDirectory(t);
  const [key, file] = [join(directory, "key.txt"), join(directory, "token.age")];
  execFileSync("age-keygen", ["--output", key], { stdio: "ignore" });
  const recipient = execFileSync("age-keygen", ["-y", key], { encoding: "utf8" }).trim();
  writeFileSync(file, execFileSync("age", ["--recipient", recipient], { input: `${value}\n` }));
  const script = place(t, { TOKEN: ["age", "--decrypt", "--identity", key, file] });
  const printed = await runSecretCommands(script, new AbortController().signal);
  assert.deepEqual(printed, { kind: "printed", values: { TOKEN: value } });
  writeFileSync(file, "spoiled");
  assert.equal((await runSecretCommands(script, new AbortController().signal)).kind, "refused");
});

test("a script that another service adopts has its secret redacted", async (t) => {
  const own = createTestRunner(t, { secretCommands: { TOKEN: ["true"] } });
  const directory = join(own.statePath, "runs/1");
  mkdirSync(directory, { recursive: true });
  // As supervisor.sh does it for a service that has died.
  const text = `cd "$1"; exec 3>lock; flock 3; mkfifo output; exec 4<>output; echo $$ >pid; echo held; read -r _; echo "it is ${value}" >&4; echo 0 >exit`;
  const env = { PATH: process.env.PATH, DEPLOY_ID: "1", REPO_PATH: own.repoPath };
  const script = spawn("sh", ["-c", text, "sh", directory], { env, detached: true });
  await once(script.stdout, "data");
  const adopted = await own.runner.adopt(deploymentWith(1));
  script.stdin.end("go\n");
  assert.equal(adopted.kind === "alive" && (await adopted.run.ended).state, "succeeded");
  assert.deepEqual([own.lines, readLog(own.statePath, 1)], [["***"], "***\n"]);
});

function place(t: Scope, secretCommands: Readonly<Record<string, Argv>>, repoPath = temporaryDirectory(t)) {
  const { PATH, HOME } = process.env;
  const secrets = { current: makeSecret(testSecret), previous: null };
  return createProjectScript({ env: { PATH, HOME }, deployEnv: [], repoPath, secrets, secretCommands })();
}
