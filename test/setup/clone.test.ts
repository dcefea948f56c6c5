import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { clone } from "../../src/setup/clone.ts";
import { git, makeRepository } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** Clones a remote with these branches, whose HEAD names another one. */
async function cloneOf(t: TestContext, ...names: readonly string[]): Promise<string> {
  const remote = makeRepository(t, "remote");
  remote.commit();
  remote.git("switch", "--quiet", "--detach");
  for (const name of names) remote.git("branch", "--force", name);
  if (!names.includes("main")) remote.git("branch", "--delete", "main");
  remote.git("symbolic-ref", "HEAD", "refs/heads/nowhere");
  const directory = join(temporaryDirectory(t), "clone");
  const screen = { readToken: async () => null, showKey: () => {}, say: () => {} };
  const url = new URL("https://shop.example.org/webhook");
  await clone({ remote: remote.directory, directory, url, repository: null }, screen);
  return git(directory, "branch", "--show-current");
}

test("a remote without a default branch is cloned at the only one of main and master, else its branches are named", async (t) => {
  assert.equal(await cloneOf(t, "main", "next"), "main");
  assert.equal(await cloneOf(t, "master"), "master");
  for (const [names, reason] of [
    [["main", "master"], /none of main, master\. Choose/],
    [["next", "trunk"], /none of next, trunk\. Choose/],
  ] as const)
    await assert.rejects(cloneOf(t, ...names), reason);
});
