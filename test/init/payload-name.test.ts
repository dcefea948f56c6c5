import assert from "node:assert/strict";
import { test } from "node:test";
import { payloadName } from "../../src/init/payload-name.ts";

for (const [host, path, name] of [
  ["github", "octo/shop", "octo/shop"],
  ["gitea", "gitea/octo/shop", "octo/shop"],
  ["forgejo", "octo/shop", "octo/shop"],
  ["gitlab", "group/deeper/shop", "group/deeper/shop"],
  ["bitbucket-data-center", "scm/key/shop", "key/shop"],
  ["gitness", "git/space/project/shop", "space/project/shop"],
  [null, "a/b/c", "a/b/c"],
] as const) {
  test(`a push from ${host ?? "an unknown host"} calls ${path} ${name}`, () => {
    assert.equal(payloadName(path, host), name);
  });
}
