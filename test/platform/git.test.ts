import assert from "node:assert/strict";
import { test } from "node:test";
import "../harness/environment.ts";
import {
  diffTexts,
  type GitRemoteUrl,
  parseGitRemoteUrl,
  withoutCredentials,
} from "../../src/platform/git.ts";

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
});
