import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { git, makePlace, type Place, probe, runInShell, setSettings } from "../harness/doctor.ts";
import { startTarget } from "../harness/listen.ts";
import { makeSshKey } from "../harness/repository.ts";
import { linesOf, writeScript } from "../harness/temporary.ts";

test("signers: a newest commit that is unsigned is a problem, and a signed one passes", async (t) => {
  const { place, push } = makeSignedPlace(t);
  assert.equal((await probe(place, "signers")).faults[0]?.severity, "problem");
  push();
  assert.equal((await probe(place, "signers")).outcome, "ok");
  assert.deepEqual(readdirSync(place.temporaryPath), []);
});

test("signers: only this user can write where the signature is verified", async (t) => {
  const { place, push } = makeSignedPlace(t);
  push();
  chmodSync(place.temporaryPath, 0o1777);
  const modes = join(place.root, "modes");
  const verify = `case "$*" in *verify-commit*) stat --format %a "$2/.." >>'${modes}' ;; esac`;
  const bin = join(place.root, "bin");
  mkdirSync(bin);
  writeScript(join(bin, "git"), `#!/bin/sh\n${verify}\nPATH=\${PATH#*:}\nexec git "$@"\n`);
  const env = { PATH: [bin, process.env.PATH].join(delimiter) };
  assert.equal((await probe(place, "signers", { env })).outcome, "ok");
  assert.deepEqual(linesOf(modes), ["700"]);
});

test("signers: a file that others can write is a warning, with the command that fixes it", async (t) => {
  const { place, path, push } = makeSignedPlace(t);
  push();
  chmodSync(path, 0o666);
  const [fault] = (await probe(place, "signers")).faults;
  assert.deepEqual([fault?.severity, fault?.command], ["warning", `chmod go-w ${path}`]);
  await runInShell(place, fault?.command ?? "false");
  assert.equal((await probe(place, "signers")).outcome, "ok");
});

/** What Gitea answers to a status on no commit, and to who reads the checks of one. */
for (const [what, status, checks, severity, env = {}] of [
  ["with the rights passes", 404, 403, undefined],
  ["that may only read is a warning, which does not show it", 403, 403, "warning"],
  ["that reads the checks that DEPLOY_AFTER awaits passes", 404, 200, undefined, { DEPLOY_AFTER: "checks" }],
  ["that may not read these checks is a problem", 404, 403, "problem", { DEPLOY_AFTER: "checks" }],
] as const)
  test(`commit-status: a token ${what}`, async (t) => {
    const { url } = await startTarget(t, (response, { method, path }) => {
      const read = path.includes("/commits/") ? checks : 200;
      response.writeHead(method === "GET" ? read : status).end('{"statuses":null}');
    });
    const found = await probeToken(makePlace(t), url, 0o600, env);
    assert.equal(found.faults[0]?.severity, severity);
  });

test("commit-status: a token that other users can read is a warning, and is not used", async (t) => {
  const { url, requests } = await startTarget(t);
  assert.equal((await probeToken(makePlace(t), url, 0o644)).faults[0]?.severity, "warning");
  assert.deepEqual(requests, []);
});

async function probeToken(
  place: Place,
  url: string,
  mode: number,
  env: Readonly<Record<string, string>> = {},
) {
  const path = join(place.root, "token");
  writeFileSync(path, "a-token-of-gitea\n", { mode });
  chmodSync(path, mode);
  setSettings(place, { COMMIT_STATUS_URL: `gitea+${url}/octo/app`, COMMIT_STATUS_TOKEN_FILE: path, ...env });
  const found = await probe(place, "commit-status");
  assert.ok(!JSON.stringify(found).includes("a-token-of-gitea"));
  return found;
}

/** A place that allows one key; `push` pushes a commit that it has signed. */
function makeSignedPlace(t: TestContext) {
  const place = makePlace(t);
  const path = join(place.root, "signers");
  const { publicKey, gitOptions } = makeSshKey(t);
  writeFileSync(path, `ada@example.com ${publicKey}\n`, { mode: 0o644 });
  setSettings(place, { ALLOWED_SIGNERS: path });
  const push = () => {
    git(place, ...gitOptions, "commit", "--quiet", "--allow-empty", "--message", "A change");
    git(place, "push", "--quiet", "origin", "main");
  };
  return { place, path, push };
}
