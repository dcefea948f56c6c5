import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseEnv } from "node:util";
import { composeOverrideNames } from "../../src/platform/compose.ts";
import { writePlanned } from "../../src/setup/planned-file.ts";
import {
  chooseProjectName,
  findProject,
  parsePublicUrl,
  parseRemoteUrl,
  planCheckoutFiles,
  projectFile,
  readRemoteBranch,
} from "../../src/setup/project.ts";
import { git, makeProject, makeRepository } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a remote's URL has its host and repository, and no credentials", () => {
  for (const [url, hostname, path, origin] of [
    ["git@github.com:octo/app.git", "github.com", "octo/app", "https://github.com"],
    ["github.com:octo/app", "github.com", "octo/app", "https://github.com"],
    ["github.com-shop:octo/app.git", "github.com", "octo/app", "https://github.com"],
    ["ssh://git@ssh.github.com:443/octo/app.git", "github.com", "octo/app", "https://github.com"],
    ["https://github.com/octo/app.git/", "github.com", "octo/app", "https://github.com"],
    ["https://user:ghp_token@GitHub.com/octo/app", "github.com", "octo/app", "https://github.com"],
    ["ssh://git@git.example.org:2222/a/b/c.git", "git.example.org", "a/b/c", "https://git.example.org"],
    ["http://git.example.org:3000/a/b.git", "git.example.org", "a/b", "http://git.example.org:3000"],
    ["git://example.org/~mara/b.git", "example.org", "mara/b", "https://example.org"],
    ["git@[2001:db8::1]:a/b.git", "[2001:db8::1]", "a/b", "https://[2001:db8::1]"],
  ] as const) {
    const remote = parseRemoteUrl(url);
    assert.deepEqual([remote?.hostname, remote?.path, remote?.origin], [hostname, path, origin]);
    assert.doesNotMatch(JSON.stringify(remote), /ghp_token|user/);
  }
  for (const url of ["/srv/git/app.git", "file:///srv/git/app.git", "../app.git", "", "https://"])
    assert.equal(parseRemoteUrl(url), null, url);
});

test("the branch to deploy is the one that the HEAD of the remote names", async (t) => {
  const remote = makeRepository(t, "remote");
  remote.commit();
  const directory = join(temporaryDirectory(t), "clone");
  remote.git("clone", "--quiet", remote.directory, directory);
  remote.git("switch", "--quiet", "--create", "x/HEAD");
  assert.equal(await readRemoteBranch(directory), null);
  remote.git("switch", "--quiet", "--create", "master");
  assert.equal(await readRemoteBranch(directory), "master");
});

test("a project has the name of its repository, with the owner's if that is taken", () => {
  const alone = { given: null, former: null, known: null, others: new Map<string, string>() };
  const others = new Map([["shop", "/srv/other/shop"]]);
  for (const [options, name] of [
    [{ path: "octo/shop" }, "shop"],
    [{ path: "octo/My_Shop.io" }, "my-shop-io"],
    [{ path: "octo/hotpush" }, "octo-hotpush"],
    [{ path: `octo/${"long-".repeat(20)}` }, "long-long-long-long-long-long-long-long"],
    [{ path: "/srv/my shop" }, "my-shop"],
    [{ path: "octo/shop", others }, "octo-shop"],
    [{ path: "octo/shop", known: "store", others }, "store"],
    [{ path: "octo/shop", former: "store" }, "store"],
    [{ path: "octo/shop", former: "shop", others }, "octo-shop"],
  ] as const)
    assert.equal(chooseProjectName({ ...alone, ...options }), name);
  for (const [options, says] of [
    [{ given: "shop", others }, /shop is the project in \/srv\/other\/shop/],
    [{ given: "caddy" }, /caddy is a name of the server/],
    [{ given: "store", known: "shop" }, /is the project shop already.*: hotpush remove --project shop$/],
  ] as const)
    assert.throws(() => chooseProjectName({ ...alone, path: "octo/shop", ...options }), says);
});

test("a typed URL needs neither scheme nor path, and has no path of its own", () => {
  for (const [text, url] of [
    ["shop.example.org", "https://shop.example.org/webhook"],
    [" http://shop.example.org:9000/ ", "http://shop.example.org:9000/webhook"],
    ["https://shop.example.org/webhook", "https://shop.example.org/webhook"],
  ] as const)
    assert.equal(parsePublicUrl(text)?.href, url);
  const paths = ["shop.example.org/blog", "https://shop.example.org/webhook/shop", "shop.example.org?page=1"];
  for (const text of [
    "",
    "  ",
    "two words",
    "ftp://shop.example.org",
    "https://ada@shop.example.org",
    ...paths,
  ])
    assert.equal(parsePublicUrl(text), null, text);
});

test("a project's file names no repository by itself, and keeps the one that a person chose", () => {
  const payloadUrl = new URL("https://shop.example.org/webhook");
  const options = {
    name: "shop",
    project: { root: "/srv/shop" },
    branch: null,
    payloadUrl,
    host: "gitea",
    given: {},
    gid: 0,
  } as const;
  const settingsAfter = (before: string | null) =>
    parseEnv(projectFile({ ...options, known: parseEnv(before ?? "") }).make(before));
  assert.equal(settingsAfter(null).REPOSITORY, undefined);
  assert.equal(settingsAfter("REPOSITORY=octo/shop\n").REPOSITORY, "octo/shop");
  const addressBefore = (address: string) => settingsAfter(`WEBHOOK_URL=${address}\n`).WEBHOOK_URL;
  assert.equal(addressBefore("https://shop.example.org"), "https://shop.example.org", "it means the same");
  assert.equal(addressBefore("https://old.example.org/webhook"), payloadUrl.href);
});

test("a branch that the remote no longer has gives way to the only one left; a missing HEAD does too", async (t) => {
  const remote = makeRepository(t, "remote");
  remote.commit();
  const directory = join(temporaryDirectory(t), "clone");
  remote.git("clone", "--quiet", remote.directory, directory);
  assert.equal(await readRemoteBranch(directory, "master"), "main");
  remote.git("switch", "--quiet", "--create", "next");
  assert.equal(await readRemoteBranch(directory, "master"), "main");
  remote.git("branch", "master");
  assert.equal(await readRemoteBranch(directory, "master"), "master");
  remote.git("branch", "--delete", "master");
  remote.git("symbolic-ref", "HEAD", "refs/heads/nowhere");
  assert.equal(await readRemoteBranch(directory), "main");
  remote.git("branch", "--move", "main", "trunk");
  assert.equal(await readRemoteBranch(directory, "main"), "main");
  remote.git("config", "core.bare", "true");
  renameSync(remote.directory, `${remote.directory}-away`);
  assert.equal(await readRemoteBranch(directory, "master"), "master");
});

const text = "# Written by `hotpush init`.\nservices: {}\n";

/** What `init` writes into a checkout with these files in git, and what compose and git then see. */
async function setUp(
  t: TestContext,
  tracked: Record<string, string>,
  untracked: Record<string, string> = {},
) {
  const { repoPath, push } = makeProject(t);
  push("First", { "compose.yaml": "services: {}\n", ...tracked });
  git(repoPath, "pull", "--quiet");
  for (const [name, content] of Object.entries(untracked)) writeFileSync(join(repoPath, name), content);
  const plan = async () => await planCheckoutFiles(await findProject(repoPath), text);
  const written = (await plan()).filter(({ state }) => state !== "right").map(({ name }) => name);
  (await plan()).forEach(writePlanned);
  assert.deepEqual(new Set((await plan()).map(({ state }) => state)), new Set(["right"]));
  return { repoPath, written, files: (await findProject(repoPath)).composeFiles };
}

test("a .env in the repository stays as it is: compose reads an override of ours by itself", async (t) => {
  const { repoPath, written, files } = await setUp(t, { ".env": "A=1\n" });
  assert.deepEqual(written, ["compose.override.yaml", ".git/info/exclude"]);
  assert.equal(git(repoPath, "status", "--porcelain"), "?? deploy.sh");
  assert.deepEqual(files, [join(repoPath, "compose.yaml")]);
});

test("where compose would not read ours by itself, .env names it, and a checkout keeps the place that it has", async (t) => {
  const named = ["compose.hotpush.yaml", ".env", ".git/info/exclude"];
  for (const name of composeOverrideNames)
    for (const [tracked, untracked] of [
      [{ [name]: "services: {}\n" }, {}],
      [{}, { [name]: "services: {}\n" }],
    ] as const) {
      const { repoPath, written, files } = await setUp(t, tracked, untracked);
      assert.deepEqual(written, named);
      assert.deepEqual(
        files,
        ["compose.yaml", name].map((file) => join(repoPath, file)),
      );
    }
  const listed = await setUp(t, { "more.yaml": "" }, { ".env": "COMPOSE_FILE=compose.yaml:more.yaml\n" });
  assert.deepEqual(listed.written, named);
  const before = await setUp(
    t,
    {},
    { "compose.hotpush.yaml": text, ".env": "COMPOSE_FILE=compose.yaml:compose.hotpush.yaml\n" },
  );
  assert.deepEqual(before.written, [".env", ".git/info/exclude"]);
});

test("a name for the compose project goes to .env, beside a person's lines", async (t) => {
  const { repoPath } = await setUp(t, {}, { ".env": "A=1\n" });
  (await planCheckoutFiles(await findProject(repoPath), text, "b-app")).forEach(writePlanned);
  assert.equal(readFileSync(join(repoPath, ".env"), "utf8"), "A=1\nCOMPOSE_PROJECT_NAME=b-app\n");
  assert.equal(git(repoPath, "status", "--porcelain"), "?? deploy.sh");
  const tracked = await setUp(t, { ".env": "A=1\n" });
  const plan = planCheckoutFiles(await findProject(tracked.repoPath), text, "b-app");
  await assert.rejects(plan, /^CommandError: \.env is in the repository/);
});

test("a .env in the repository that must name our file is refused with the commands that take it out, and they work", async (t) => {
  const { remotePath, repoPath, push } = makeProject(t);
  push("First", { ".env": "A=1\nCOMPOSE_FILE=compose.yaml\n", "compose.yaml": "services: {}\n" });
  git(repoPath, "pull", "--quiet");
  const plan = async () => await planCheckoutFiles(await findProject(repoPath), text);
  const { message } = await plan().then(
    () => assert.fail(),
    (error: Error) => error,
  );
  const [, there = "", here = ""] =
    /: (git rm .*), commit and push.* here: (cd .*)\. Then/.exec(message) ?? [];
  const developer = join(temporaryDirectory(t), "developer");
  git(repoPath, "clone", "--quiet", remotePath, developer);
  execFileSync("sh", ["-ec", there], { cwd: developer });
  git(developer, "commit", "--quiet", "--message", "Take it out");
  git(developer, "push", "--quiet");
  execFileSync("sh", ["-ec", here], { stdio: "pipe" });
  (await plan()).forEach(writePlanned);
  assert.match(readFileSync(join(repoPath, ".env"), "utf8"), /^A=1\n[\s\S]*^COMPOSE_FILE=/m);
  assert.equal(git(repoPath, "status", "--porcelain"), "?? deploy.sh");
  assert.deepEqual(new Set((await plan()).map(({ state }) => state)), new Set(["right"]));
});
