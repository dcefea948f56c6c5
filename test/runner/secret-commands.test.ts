import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import type { Argv } from "../../src/platform/run-command.ts";
import { createProjectScript, printSecrets } from "../../src/runner/script.ts";
import { testSecret } from "../harness/delivery.ts";
import { needs } from "../harness/requirements.ts";
import { createTestRunner, deploymentWith } from "../harness/runs.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

const value = "correct-horse-battery";

test("what a command prints is a variable of the script, and is redacted", async (t) => {
  const secretCommands = {
    GREETING: ["printf", "%s\\n\\n", value],
    PLACE: ["echo", "somewhere else"],
  } as const;
  const own = createTestRunner(t, { secretCommands, scriptSecrets: { PLAIN: "in the file" } });
  const ending = await own.run('#!/bin/sh\necho "<$GREETING>" "<$PLACE>"\n');
  assert.equal(ending.state, "succeeded");
  assert.deepEqual(own.lines, ["<***", "> <***>"]);
  assert.doesNotMatch(own.log(), new RegExp(value));
});

const faults: Readonly<Record<string, { readonly argv: Argv; readonly says: RegExp }>> = {
  "that fails": {
    argv: ["sh", "-c", `echo ${value}; echo first >&2; echo the vault is sealed >&2; exit 3`],
    says: /^TOKEN of the secrets file has no value: sh ended with exit code 3: the vault is sealed\. Nothing was run\./,
  },
  "that fails without a reason": {
    argv: ["sh", "-c", `echo ${value}; exit 3`],
    says: /sh ended with exit code 3: it gave no reason\./,
  },
  "that prints nothing": { argv: ["true"], says: /true printed nothing\./ },
  "that prints a line end only": { argv: ["echo"], says: /echo printed nothing\./ },
  "that is not installed": { argv: ["no-such-program"], says: /no-such-program is not installed\./ },
  "that may not be executed": { argv: ["/etc"], says: /exit code 126: \S/ },
  "that hangs": { argv: ["sleep", "300"], says: /sleep did not end within 0\.3 s\./ },
  "that prints a zero byte": { argv: ["printf", "a\\0b"], says: /zero byte/ },
  "that prints more than a variable holds": {
    argv: ["head", "-c", "70000", "/etc/passwd-", "/bin/sh"],
    says: /more than 64 KiB|zero byte/,
  },
};

for (const [what, { argv, says }] of Object.entries(faults)) {
  test(`a command ${what} is named, and the script is not started`, async (t) => {
    const { script } = place(t, { TOKEN: argv });
    const printed = await printSecrets(script, new AbortController().signal, 300);
    assert.equal(printed.kind, "refused", JSON.stringify(printed));
    assert.equal(printed.problem.code, "secret_unavailable");
    assert.match(printed.problem.detail, says);
    assert.doesNotMatch(printed.problem.detail, new RegExp(value));
  });
}

test("a deployment whose command fails runs no script", async (t) => {
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
  const deployment = {
    ...deploymentWith(1),
    subject: `$(touch ${trap})`,
    author: "mallory",
    pusher: "mallory",
  };
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
  const { script } = place(t, { LITERAL: ["printf", "%s", literal] }, own.repoPath);
  const printed = await printSecrets(script, new AbortController().signal);
  assert.deepEqual(printed, { kind: "printed", values: { LITERAL: literal } });
  const evil = place(t, { EVIL: ["./evil"] }, own.repoPath);
  assert.equal((await printSecrets(evil.script, new AbortController().signal)).kind, "refused");
  assert.equal(existsSync(trap), false);
});

test("a file that age has encrypted is decrypted with a key of the owner", needs("age"), async (t) => {
  const directory = temporaryDirectory(t);
  const [key, file] = [join(directory, "key.txt"), join(directory, "token.age")];
  execFileSync("age-keygen", ["--output", key], { stdio: "ignore" });
  const recipient = execFileSync("age-keygen", ["-y", key], { encoding: "utf8" }).trim();
  writeFileSync(file, execFileSync("age", ["--recipient", recipient], { input: `${value}\n` }));
  const { script } = place(t, { TOKEN: ["age", "--decrypt", "--identity", key, file] });
  const printed = await printSecrets(script, new AbortController().signal);
  assert.deepEqual(printed, { kind: "printed", values: { TOKEN: value } });
  writeFileSync(file, "spoiled");
  const spoiled = await printSecrets(script, new AbortController().signal);
  assert.match(spoiled.kind === "refused" ? spoiled.problem.detail : "", /age ended with exit code 1: \S/);
});

/** What prints another value each time. */
const changing = ["sh", "-c", "head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \\n'"] as const;

test("a script that another service adopts has its secret redacted", async (t) => {
  const own = createTestRunner(t, { secretCommands: { TOKEN: changing } });
  const { run, deployment } = await own.start(
    '#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done; echo "it is $TOKEN"; echo "$TOKEN" >kept\n',
  );
  const adopted = await own.runner.adopt(deployment);
  assert.equal(adopted.kind, "alive");
  writeFileSync(join(own.repoPath, "go"), "");
  await Promise.all([run.ended, adopted.run.ended]);
  const kept = readFileSync(join(own.repoPath, "kept"), "utf8").trim();
  assert.ok(kept.length > 20);
  assert.ok(own.lines.includes("***"), own.lines.join("\n"));
  assert.ok(!own.lines.join("\n").includes(kept) && !own.log().includes(kept));
});

function place(t: Scope, secretCommands: Readonly<Record<string, Argv>>, repoPath = temporaryDirectory(t)) {
  const { PATH, HOME } = process.env;
  const secrets = { current: makeSecret(testSecret), previous: null };
  return {
    script: createProjectScript({ env: { PATH, HOME }, deployEnv: [], repoPath, secrets, secretCommands })(),
  };
}
