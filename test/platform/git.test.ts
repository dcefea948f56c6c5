import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  diffTexts,
  type GitRemoteUrl,
  parseGitRemoteUrl,
  withoutCredentials,
} from "../../src/platform/git.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const cases: readonly (readonly [string, string])[] = [
  ["", "a\n"],
  ["a\n", ""],
  ["1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1\nX\n3\n4\n5\n6\n7\n8\n9\n10\nY\n12\n13\n"],
];

test("a difference is one that git applies", async (t) => {
  for (const [before, after] of cases) {
    const path = join(temporaryDirectory(t), "file");
    writeFileSync(path, before);
    const input = `${await diffTexts("file", before, after, process)}\n`;
    spawnSync("git", ["apply", "-p0", "-"], { input, cwd: join(path, "..") });
    assert.equal(readFileSync(path, "utf8"), after, input);
  }
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
