import assert from "node:assert/strict";
import { test } from "node:test";
import { gitHostOf, payloadName } from "../../src/init/git-host.ts";

for (const [host, path, name] of [
  ["github", "octo/shop", "octo/shop"],
  ["gitea", "gitea/octo/shop", "octo/shop"],
  ["forgejo", "octo/shop", "octo/shop"],
  ["gitlab", "group/deeper/shop", "group/deeper/shop"],
  ["bitbucket-data-center", "scm/key/shop", "key/shop"],
  ["gitness", "git/space/project/shop", "space/project/shop"],
  [null, "a/b/c", "a/b/c"],
] as const) {
  test(`a push from ${host ?? "an unknown host"} names ${path} as ${name}`, () => {
    assert.equal(payloadName(path, host), name);
  });
}

test("the git host follows from its hostname or a word in it, or is unknown", () => {
  const hostOf = (hostname: string) => gitHostOf({ hostname });
  assert.equal(hostOf("github.com"), "github");
  assert.equal(hostOf("codeberg.org"), "forgejo");
  assert.equal(hostOf("bitbucket.org"), "bitbucket");
  assert.equal(hostOf("bitbucket.example.org"), "bitbucket-data-center");
  assert.equal(hostOf("gitlab.example.org"), "gitlab");
  assert.equal(hostOf("code.example.org"), null);
});
