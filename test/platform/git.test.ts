import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import "../harness/environment.ts";
import {
  type Checkout,
  diffTexts,
  type GitRemoteUrl,
  parseGitRemoteUrl,
  readCommit,
  readRemoteHead,
  withoutCredentials,
} from "../../src/platform/git.ts";
import { makeRepository } from "../harness/repository.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

const mebibytes = (count: number, text: string) => text.repeat((count * 1024 ** 2) / text.length);

test("author and subject of a commit are read up to a bound, and cleaned", async (t) => {
  const { directory, git } = makeRepository(t);
  const tree = git("write-tree");
  for (const [author, subject, expected] of [
    ["Ada", `\u001b[31mred${"\u202e"}`, { author: "Ada", subject: "red" }],
    ["Ada", mebibytes(16, "\u001b]"), { author: "Ada" }],
    ["Ada", mebibytes(80, "x"), { author: "Ada", subject: `${"x".repeat(999)}…` }],
    [mebibytes(2, "a"), "A change", { author: `${"a".repeat(999)}…`, subject: "" }],
  ] as const) {
    const input = `tree ${tree}\nauthor ${author} <a> 0 +0000\ncommitter b <b> 0 +0000\n\n${subject}\n`;
    const hash = ["-C", directory, "hash-object", "-t", "commit", "-w", "--stdin"];
    const id = execFileSync("git", hash, { encoding: "utf8", input }).trim();
    const read = await readCommit(directory, id, { env: process.env, user: null });
    assert.deepEqual({ ...read, ...expected }, read, `${author.length} ${subject.length}`);
    assert.deepEqual([read?.id, (read?.subject.length ?? 0) <= 1_000], [id, true]);
  }
});

test("a remote that lists or says too much is not heard, and what is kept of it is bounded", async (t) => {
  const remote = makeRepository(t);
  const head = remote.commit();
  const checkout = { ...checkoutOf(remote.directory), environment: { DEPLOY_REMOTE: remote.directory } };
  const ref = remote.git("symbolic-ref", "HEAD");
  assert.deepEqual(await readRemoteHead(checkout, ref), { kind: "head", commit: head });
  const refs = Array.from({ length: 20_000 }, (_, n) => `${head} refs/heads/a${n}/${ref}\n`);
  writeFileSync(join(remote.directory, ".git/packed-refs"), refs.sort().join(""));
  const listed = await readRemoteHead(checkout, ref);
  assert.equal(listed.kind, "unknown");
  const liar = sshThatSays(t, 'head -c 15000000 /dev/zero | tr "\\0" "\\033" >&2');
  const said = await readRemoteHead(
    { ...checkout, environment: { ...liar, DEPLOY_REMOTE: "git@host.test:a/b" } },
    ref,
  );
  assert.ok(said.kind === "unknown" && said.detail.length < 2_000);
});

function checkoutOf(repoPath: string): Checkout {
  return { repoPath, environment: {}, user: null, redactor: () => ({ text: (text) => text }) };
}

function sshThatSays(t: TestContext, line: string) {
  const path = join(temporaryDirectory(t), "ssh");
  mkdirSync(join(path, ".."), { recursive: true });
  writeScript(path, `#!/bin/sh\n${line}\nexit 1\n`);
  return { PATH: process.env.PATH ?? "", GIT_SSH_COMMAND: path };
}

test("a difference is shown as git shows it, by the name of the file", async () => {
  const text = await diffTexts("file", "a\nb\n", "a\nB\n", process);
  assert.equal(text, "--- file\n+++ file\n@@ -1,2 +1,2 @@\n a\n-b\n+B");
});

const remotes: Readonly<Record<string, Partial<GitRemoteUrl>>> = {
  "git@github.com:octo/app.git": { scheme: "ssh", user: "git", host: "github.com", path: "octo/app.git" },
  "shop:/srv/app.git": { scheme: "ssh", user: null, host: "shop", path: "srv/app.git" },
  "git@[2001:db8::1]:a/b": { scheme: "ssh", user: "git", host: "2001:db8::1", path: "a/b" },
  "ssh://git@host:2222/a/b.git": { scheme: "ssh", user: "git", host: "host", port: 2222, path: "a/b.git" },
  "git+ssh://host/a": { scheme: "ssh", host: "host", port: null, path: "a" },
  "HTTPS://[::1]:8443/a": { scheme: "https", user: null, host: "::1", port: 8443, path: "a" },
  "git://host/~mara/b": { scheme: "git", host: "host", path: "~mara/b" },
};

test("a remote is read as git reads it", () => {
  for (const [url, parts] of Object.entries(remotes)) {
    const remote = parseGitRemoteUrl(` ${url}\n`);
    assert.deepEqual({ ...remote, ...parts, text: url }, remote, url);
  }
  for (const path of ["/srv/git/app.git", "file:///srv/git/app.git", "../a:b", "https://host", ""]) {
    const remote = { text: path, scheme: "file", user: null, host: null, port: null, path };
    assert.deepEqual(parseGitRemoteUrl(path), remote);
  }
});

test("credentials are in no text of a remote, and the name of its user has no password", () => {
  const { text, user } = parseGitRemoteUrl("https://octo:p@ss@host/a.git");
  assert.deepEqual([text, user], ["https://…@host/a.git", "octo"]);
  assert.equal(withoutCredentials("fatal: 'http://token@a/b' or c@d"), "fatal: 'http://…@a/b' or c@d");
  const others = "postgres://:pw@db:5432/a, then ssh://git@host:22/a";
  assert.equal(withoutCredentials(others), "postgres://…@db:5432/a, then ssh://git@host:22/a");
});
