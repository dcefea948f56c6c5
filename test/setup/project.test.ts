import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
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

const text = "# Written by `hotpush init`.\nservices: {}\n";

test("a .env in the repository is refused with the commands that take it out, and they work", async (t) => {
  const { remotePath, repoPath, push } = makeProject(t);
  push("First", { ".env": "A=1\n", "compose.yaml": "services: {}\n" });
  git(repoPath, "pull", "--quiet");
  const setUp = async () => await planCheckoutFiles(await findProject(repoPath), text);
  const { message } = await setUp().then(
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
  (await setUp()).forEach(writePlanned);
  assert.match(readFileSync(join(repoPath, ".env"), "utf8"), /^A=1\n[\s\S]*^COMPOSE_FILE=/m);
  assert.equal(git(repoPath, "status", "--porcelain"), "?? deploy.sh");
  assert.deepEqual(new Set((await setUp()).map(({ state }) => state)), new Set(["right"]));
});
