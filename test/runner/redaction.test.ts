import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import { createProjectScript } from "../../src/runner/script.ts";
import { deliver, githubPush, testSecret } from "../harness/delivery.ts";
import { readLog, readSteps } from "../harness/records.ts";
import { assertNowhere, contentsOf, printedBy } from "../harness/secrecy.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

const dotenvPassword = "p4ss word/of+the&database=1";
const gitToken = "glpat-9sK2mQ7xV4cT1bN8";
const ownToken = "tok_5f0b9a1c2d3e4f60718293a4b5c6d7e8";
const all = { testSecret, dotenvPassword, gitToken, ownToken };

/** Prints each secret, which it has in a file of its own, in all encodings, and in two writes with a pause between. */
const talkingScript = `#!/bin/sh
urlencode() { node -e 'console.log(encodeURIComponent(process.argv[1]))' "$1"; }
while IFS= read -r secret; do
  echo "plain: $secret."
  printf %s "$secret" | base64
  printf %s "user:$secret" | base64 -w 0; echo
  printf %s "x-token:$secret:x" | base64 | tr '+/' '-_'
  urlencode "$secret"
  node -p 'JSON.stringify({ value: process.argv[1] })' "$secret"
  printf '%.9s' "$secret"
  sleep 0.1
  printf '%s\\nand more\\n' "$(printf %s "$secret" | cut -c10-)"
  echo "==> Log in with $secret"
  printf 'without a line end: %s' "$secret"
  sleep 0.1
  printf '\\n'
done <"$REPO_PATH/printed"
echo "the last line has $(head -n 1 "$REPO_PATH/printed")" >&2
exit 3
`;

test("secrets that a script prints, in the known forms, are shown and stored nowhere", async (t) => {
  const repoPath = temporaryDirectory(t);
  execFileSync("git", ["init", "--quiet", repoPath]);
  const remote = `https://oauth2:${gitToken}@git.example/app.git`;
  execFileSync("git", ["-C", repoPath, "remote", "add", "upstream", remote]);
  writeFileSync(join(repoPath, ".env"), `DB_PASSWORD='${dotenvPassword}'\n`);
  writeFileSync(join(repoPath, "printed"), `${Object.values(all).join("\n")}\n`);
  writeScript(join(repoPath, "deploy.sh"), talkingScript);
  const service = await startService(t, { repoPath, env: { DEPLOY_ENV: "A_TOKEN", A_TOKEN: ownToken } });
  const push = githubPush();
  const answers = [await deliver(service.url, push), await deliver(service.url, push)];
  const ending = await service.log.waitForEnding(1);
  await service.end();
  assert.match(ending.msg ?? "", /exit code 3\. Its last line: the last line has \*\*\*$/);
  const seen = [...printedBy(service), JSON.stringify(answers), ...contentsOf(service.statePath)];
  assertNowhere(seen, Object.values(all));
  const output = service.log.outputOf(1);
  assert.equal(output.filter((line) => line === "plain: ***.").length, 4);
  assert.equal(output.filter((line) => line === '{"value":"***"}').length, 4);
  assert.equal(output.filter((line) => line === "without a line end: ***").length, 4);
  assert.match(readLog(service.statePath, 1), /\n\*\*\*\nand more\n/);
  assert.equal(readSteps(service.statePath, 1)[0], "1: Log in with ***");
});

test("secrets of settings, environment, .env, git and Docker are redacted, as they are now", (t) => {
  const home = temporaryDirectory(t);
  const repoPath = join(home, "app");
  mkdirSync(repoPath);
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    STATE_PATH: home,
    GIT_CONFIG_NOSYSTEM: "1",
    HOTPUSH_TOKEN: "from the environment",
    EXTRA_PASSWORD: "named by DEPLOY_ENV",
    NOT_PASSED_TOKEN: "the script never sees it",
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from("me:from-basic").toString("base64")}`,
    HOTPUSH_PASSWORD_FILE: "db_password",
    HOTPUSH_CONFIG_FILE: "settings",
  };
  const secrets = {
    current: makeSecret("the-current-secret"),
    previous: makeSecret("the-previous-secret"),
  };
  writeFileSync(join(home, ".git-credentials"), "https://me:from-stored-passwords@git.example\n");
  execFileSync("git", ["init", "--quiet", repoPath]);
  const remote = "https://x-access-token:from-the-remote@git.example/app.git";
  execFileSync("git", ["-C", repoPath, "remote", "add", "origin", remote]);
  writeFileSync(join(repoPath, "db_password"), "from a file\n");
  writeFileSync(join(repoPath, "settings"), "no secret");
  writeFileSync(join(repoPath, "app.key"), "from a file that .env names");
  writeFileSync(join(repoPath, ".env"), "API_KEY='from .env'\nNODE_ENV=staging-1\nAPP_KEY_FILE=app.key\n");
  const auth = Buffer.from("me:secret-of-the-registry").toString("base64");
  mkdirSync(join(home, ".docker"));
  writeFileSync(join(home, ".docker/config.json"), JSON.stringify({ auths: { r: { auth } } }));
  const script = createProjectScript({ env, deployEnv: ["EXTRA_PASSWORD"], repoPath, secrets });
  const redact = (text: string) => script().redactor().text(text);
  for (const secret of [
    "the-current-secret",
    "the-previous-secret",
    "from the environment",
    "named by DEPLOY_ENV",
    "from-basic",
    "from-the-remote",
    "from-stored-passwords",
    "from a file",
    "from .env",
    "from a file that .env names",
    "secret-of-the-registry",
  ])
    assert.equal(redact(`> ${secret} <`), "> *** <");
  writeFileSync(join(repoPath, ".env"), "API_KEY='added since'\n");
  assert.equal(redact("> added since <"), "> *** <");
  for (const text of ["the script never sees it", "no secret", "staging-1"]) assert.equal(redact(text), text);
});

test("thousands of files that an owner names as secrets are not all read", (t) => {
  const repoPath = temporaryDirectory(t);
  writeFileSync(join(repoPath, "first"), "from the first");
  writeFileSync(join(repoPath, "last"), "from the last");
  const lines = Array.from({ length: 1_000 }, (_, number) => `B${number}_SECRET_FILE=none\n`).join("");
  writeFileSync(join(repoPath, ".env"), `A_SECRET_FILE=first\n${lines}Z_SECRET_FILE=last\n`);
  const secrets = { current: makeSecret(testSecret), previous: null };
  const script = createProjectScript({ env: { HOME: repoPath }, deployEnv: [], repoPath, secrets });
  assert.equal(script().redactor().text("from the first, from the last"), "***, from the last");
});

const quick = { DEPLOY_RETRY_PAUSES: "0", DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" };

test("the log does not show the token of a remote that git names in an error", async (t) => {
  const repoPath = temporaryDirectory(t);
  const binPath = temporaryDirectory(t);
  const remote = `https://oauth2:${gitToken}@git.example/app.git`;
  writeScript(
    join(binPath, "git"),
    `#!/bin/sh\ncase "$*" in *ls-remote*) echo "fatal: unable to access '${remote}'" >&2; exit 128 ;; esac\nPATH=\${PATH#*:} exec git "$@"\n`,
  );
  execFileSync("git", ["init", "--quiet", repoPath]);
  execFileSync("git", ["-C", repoPath, "remote", "add", "origin", remote]);
  writeScript(join(repoPath, "deploy.sh"), "#!/bin/sh\n");
  const env = { ...quick, PATH: `${binPath}:${process.env.PATH}` };
  const service = await startService(t, { repoPath, env });
  await deliver(service.url, githubPush());
  const line = await service.log.waitFor(({ event }) => event === "deployment.waits");
  assert.match(line.msg ?? "", /unable to access 'https:\/\/oauth2:\*\*\*@git\.example/);
});
