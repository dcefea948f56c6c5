import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { startService } from "../harness/service.ts";
import { makeProject } from "./init-project.ts";

test("the secret is not shown without a terminal", async (t) => {
  const { init, read } = makeProject(t);
  const { stdout, stderr } = await init();
  const { WEBHOOK_SECRET: secret = "none" } = parseEnv(read(".env"));
  assert.ok(!`${stdout}${stderr}`.includes(secret));
  assert.match(stdout, /^ +Secret +the value of WEBHOOK_SECRET in \.env$/m);
});

for (const [url, host, expected] of [
  [
    "https://user:tok3n@code.example.org/a/b.git",
    "gitea",
    /https:\/\/code\.example\.org\/a\/b\/settings\/hooks\/gitea/,
  ],
  ["git@gitlab.com:a/b/c.git", null, /https:\/\/gitlab\.com\/a\/b\/c\/-\/hooks/],
  ["git@codeberg.org:a/b.git", null, /codeberg\.org\/a\/b\/settings\/hooks\/forgejo\/new/],
] as const) {
  test(`the form for ${new URL(url.replace("git@", "ssh://").replace(":a/", "/a/")).hostname} is that of its host`, async (t) => {
    const { repository, init, read } = makeProject(t);
    repository.git("remote", "set-url", "origin", url);
    const { stdout, stderr, code } = await init(host === null ? [] : ["--host", host]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, expected);
    assert.doesNotMatch(`${stdout}${read(".env")}`, /tok3n/);
    const { WEBHOOK_SECRET: secret = "", HOTPUSH_GIT_HOST } = parseEnv(read(".env"));
    assert.equal(HOTPUSH_GIT_HOST, host ?? undefined);
    if (url.includes("gitlab")) assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal((await init(["--check"])).code, 0);
  });
}

test("if the service answers already, init ends with a signed dry run", async (t) => {
  const { repository, init, read } = makeProject(t);
  await init();
  const { WEBHOOK_SECRET = "", REPOSITORY = "" } = parseEnv(read(".env"));
  const service = await startService(t, { env: { WEBHOOK_SECRET, REPOSITORY } });
  await init(["--yes", "--url", service.url]);
  const { stdout } = await init();
  const commit = repository.git("rev-parse", "--short=7", "HEAD");
  assert.match(stdout, new RegExp(`A signed test push reached the service and would deploy ${commit}\\.\n$`));
});
