import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { git, makePlace, type Place, probe, runInShell, testBroken } from "../harness/doctor.ts";
import { listenHere } from "../harness/listen.ts";
import { type Scope, writeScript } from "../harness/temporary.ts";

/** Serves the place's remote by HTTP, as a plain web server can, unless `answer` has answered itself (false). */
async function serveRemote(
  t: Scope,
  { remotePath }: Place,
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => true,
): Promise<string> {
  execFileSync("git", ["-C", remotePath, "update-server-info"]);
  const server = createServer((request, response) => {
    if (!answer(request, response)) return;
    try {
      const { pathname } = new URL(request.url ?? "", "http://localhost");
      response.end(readFileSync(join(remotePath, pathname.replace("/octo/app.git/", ""))));
    } catch {
      response.writeHead(404).end();
    }
  });
  return `http://127.0.0.1:${await listenHere(t, server)}/octo/app.git`;
}

function useRemote(place: Place, url: string): void {
  git(place, "remote", "set-url", "origin", url);
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
      useRemote(place, await serveRemote(t, place, withPassword));
    },
    fix: typeToken,
  },
]);

function hidden(_request: IncomingMessage, response: ServerResponse): boolean {
  response.writeHead(404).end();
  return false;
}

/** As a git host asks for a token. */
function withPassword({ headers }: IncomingMessage, response: ServerResponse): boolean {
  const right = `Basic ${Buffer.from("octo:token-of-octo").toString("base64")}`;
  if (headers.authorization === right) return true;
  response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
  return false;
}

/** Runs the command, and types what git asks for, as the person at the terminal would. */
async function typeToken(place: Place, { command }: { readonly command: string | null }): Promise<void> {
  const typing = writeScript(
    join(place.home, "type"),
    "#!/bin/sh\ncase $1 in User*) echo octo ;; *) echo token-of-octo ;; esac\n",
  );
  const ended = await runInShell(place, command ?? "false", { GIT_ASKPASS: typing });
  assert.equal(ended.code, 0, ended.stderr);
}

test("remote: a token in the address is never shown", async (t) => {
  const place = makePlace(t);
  const url = await serveRemote(t, place, hidden);
  for (const credentials of ["octo:ghp_abcdef123456", "ghp_abcdef123456"]) {
    useRemote(place, url.replace("//", `//${credentials}@`));
    const found = await probe(place, "remote");
    assert.deepEqual([found.outcome, JSON.stringify(found).includes("ghp_abcdef123456")], ["faulty", false]);
  }
});
