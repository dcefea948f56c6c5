import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { webAddress } from "../../src/calls/web-address.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a remote leads to the repository at its git host", (t) => {
  for (const [remote, expected] of [
    ["git@github.com:octo/app.git", "https://github.com/octo/app"],
    ["https://user:token@git.example.org:8443/octo/app.git", "https://git.example.org:8443/octo/app"],
    ["ssh://git@git.example.org:2222/octo/app", "https://git.example.org/octo/app"],
    ["ssh://git@ssh.github.com:443/octo/app.git", "https://github.com/octo/app"],
    ["git@gitlab.com:group/sub/app.git", "https://gitlab.com/group/sub/app"],
  ] as const)
    assert.equal(addressFor(t, remote), expected, remote);
});

test("a remote that is no git host, or would be no address, leads nowhere", (t) => {
  for (const remote of ["../app.git", "file:///srv/app", 'git@host:a"onclick=b', "javascript:alert(1)"])
    assert.equal(addressFor(t, remote), null, remote);
  assert.equal(webAddress(temporaryDirectory(t)), null);
});

function addressFor(t: TestContext, remote: string): string | null {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, ".git"));
  const config = `[core]\n\tbare = false\n[remote "other"]\n\turl = https://other.example/x\n[remote "origin"]\n\turl = ${remote}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch "main"]\n\turl = no\n`;
  writeFileSync(join(directory, ".git/config"), config);
  return webAddress(directory);
}
