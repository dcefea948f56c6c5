import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { git, makePlace, type Place, probe, runInShell, setSettings, testBroken } from "../harness/doctor.ts";
import { listenHere } from "../harness/listen.ts";
import { type Scope, writeScript } from "../harness/temporary.ts";

/** Serves the place's remote by HTTP, as a plain web server can, to who gives the name octo and this token. */
async function serveRemote(t: Scope, { remotePath }: Place, token: string): Promise<string> {
  const right = `Basic ${Buffer.from(`octo:${token}`).toString("base64")}`;
  const server = createServer(({ headers, url = "" }, response) => {
    if (headers.authorization !== right)
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    else
      try {
        const { pathname } = new URL(url, "http://localhost");
        response.end(readFileSync(join(remotePath, pathname.replace("/octo/app.git/", ""))));
      } catch {
        response.writeHead(404).end();
      }
  });
  return `http://127.0.0.1:${await listenHere(t, server)}/octo/app.git`;
}

testBroken([
  {
    name: "the only remote has another name",
    check: "remote",
    breakIt: (place) => void git(place, "remote", "rename", "origin", "upstream"),
    fix: (place) => git(place, "remote", "add", "origin", place.remotePath),
  },
  {
    name: "a private repository without a token",
    check: "remote",
    async breakIt(place, t) {
      git(place, "-C", place.remotePath, "update-server-info");
      git(place, "remote", "set-url", "origin", await serveRemote(t, place, "octo"));
    },
    // The person types what git asks for.
    async fix(place, { command }) {
      const typing = writeScript(join(place.home, "type"), "#!/bin/sh\necho octo\n");
      const ended = await runInShell(place, command ?? "false", { GIT_ASKPASS: typing });
      assert.equal(ended.code, 0, ended.stderr);
    },
  },
]);

test("remote: it is the one that the script pulls from, by its name or its address", async (t) => {
  const place = makePlace(t);
  git(place, "remote", "rename", "origin", "upstream");
  for (const remote of ["upstream", place.remotePath]) {
    setSettings(place, { DEPLOY_ENV: "DEPLOY_REMOTE", DEPLOY_REMOTE: remote });
    assert.equal((await probe(place, "remote")).fact, place.remotePath);
  }
  setSettings(place, { DEPLOY_ENV: "DEPLOY_REMOTE", DEPLOY_REMOTE: "mirror" });
  const [fault] = (await probe(place, "remote")).faults;
  assert.equal(fault?.change, `git -C ${place.repoPath} remote add mirror <address of your repository>`);
});

test("remote: a token in the address is never shown", async (t) => {
  const place = makePlace(t);
  const url = await serveRemote(t, place, "another");
  for (const credentials of ["octo:ghp_abcdef123456", "ghp_abcdef123456"]) {
    git(place, "remote", "set-url", "origin", url.replace("//", `//${credentials}@`));
    const found = await probe(place, "remote");
    assert.deepEqual([found.outcome, JSON.stringify(found).includes("ghp_abcdef123456")], ["faulty", false]);
  }
});
