import assert from "node:assert/strict";
import { test } from "node:test";
import { gitHostNames, gitHostOf } from "../../src/config/git-hosts.ts";
import { parseRemoteUrl } from "../../src/setup/project.ts";
import { payloadName, webhookForm } from "../../src/setup/webhook-form.ts";

const values = { payloadUrl: "https://shop.example.org/webhook", secret: "5ec2e7" };

test("each form has the URL and the secret", () => {
  for (const name of gitHostNames) {
    const shown = webhookForm(name, null, values).fields.map(([, value]) => value);
    for (const value of Object.values(values)) assert.ok(shown.includes(value), name);
  }
});

for (const [name, url, address] of [
  ["github", "git@github.com:octo/app.git", "https://github.com/octo/app/settings/hooks/new"],
  ["gitlab", "git@gitlab.com:a/b/c.git", "https://gitlab.com/a/b/c/-/hooks"],
  ["forgejo", "https://codeberg.org/a/b", "https://codeberg.org/a/b/settings/hooks/forgejo/new"],
  ["bitbucket-cloud", "git@bitbucket.org:a/b.git", "https://bitbucket.org/a/b/admin/webhooks"],
  [
    "bitbucket-data-center",
    "https://git.example.org/scm/tide/board.git",
    "https://git.example.org/plugins/servlet/webhooks/projects/TIDE/repos/board",
  ],
] as const)
  test(`the form of ${name} for ${url} is at ${address}`, () =>
    assert.equal(webhookForm(name, parseRemoteUrl(url), values).address, address));

for (const [host, path, name] of [
  ["github", "octo/shop", "octo/shop"],
  ["gitea", "gitea/octo/shop", "octo/shop"],
  ["forgejo", "octo/shop", "octo/shop"],
  ["gitlab", "group/deeper/shop", "group/deeper/shop"],
  ["bitbucket-data-center", "scm/key/shop", "key/shop"],
  ["gitness", "git/space/project/shop", "space/project/shop"],
  [null, "a/b/c", "a/b/c"],
] as const)
  test(`a push from ${host ?? "an unknown host"} names ${path} as ${name}`, () =>
    assert.equal(payloadName(path, host), name));

for (const [hostname, host] of [
  ["github.com", "github"],
  ["codeberg.org", "forgejo"],
  ["bitbucket.org", "bitbucket-cloud"],
  ["bitbucket.example.org", "bitbucket-data-center"],
  ["code.example.org", null],
] as const)
  test(`${hostname} is ${host ?? "no known git host"}`, () => assert.equal(gitHostOf({ hostname }), host));
