import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { commit, deploy, git, gitCalls, makeProject, page } from "./project.ts";

const main = "refs/heads/main";

test("arguments of any other shape are refused before git is called", async (t) => {
  const project = await makeProject(t);
  const commitId = "a".repeat(40);
  const refused = [
    [],
    [main],
    [main, commitId, "more"],
    ["main", commitId],
    ["refs/heads/main2", commitId],
    ["refs/heads/", commitId],
    ["refs/tags/main", commitId],
    ["refs/heads/main\n", commitId],
    ["refs/heads/main\nrefs/heads/x", commitId],
    ["--upload-pack=touch x", commitId],
    ["$(touch x)", commitId],
    [main, "$(touch x)"],
    [main, "`touch x`"],
    [main, "--upload-pack=touch x"],
    [main, "HEAD"],
    [main, "a".repeat(39)],
    [main, "a".repeat(41)],
    [main, "A".repeat(40)],
    [main, `${commitId}\n`],
    [main, `${commitId};touch x`],
  ];
  for (const args of refused) {
    const { code, output } = await deploy(project, args);
    assert.equal(code, 1, JSON.stringify(args));
    assert.match(output, /^FAILED: Usage: deploy\.sh refs\/heads\/main\|master <commit of .*\n$/);
  }
  assert.deepEqual(await gitCalls(project), []);
  assert.equal(await git(project, project.checkout, "status", "--porcelain"), "");
});

test("a directory inside somebody else's checkout is refused, and that checkout left alone", async (t) => {
  const project = await makeProject(t);
  const inner = join(project.checkout, "inner");
  await mkdir(inner);
  await writeFile(join(project.checkout, "page.txt"), "edited\n");
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  const { code, output } = await deploy(project, [main, head], { REPO_PATH: inner });
  assert.equal(code, 1);
  assert.match(output, /inner is not the root of a git checkout/);
  assert.equal(await page(project), "edited\n");
});

for (const lookAlike of ["refs/heads/refs/heads/main", "refs/tags/refs/heads/main"]) {
  test(`a remote without main is refused, though it has ${lookAlike}`, async (t) => {
    const project = await makeProject(t);
    const head = await git(project, project.checkout, "rev-parse", "HEAD");
    const tip = await commit(project, { "page.txt": "not main\n" });
    await git(project, project.clone, "push", "--quiet", "origin", `${tip}:${lookAlike}`);
    await git(project, project.remote, "update-ref", "-d", main);
    const { code, output } = await deploy(project, [main, head]);
    assert.equal(code, 1, output);
    assert.match(output, /FAILED: .* has no branch main/);
    assert.equal(await page(project), "first\n");
  });
}

test("a missing git is a sentence with what to do", async (t) => {
  const project = await makeProject(t);
  for (const name of ["bash", "env", "dirname", "tee"]) {
    await symlink(
      execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(),
      join(project.root, "tmp", name),
    );
  }
  const { code, output } = await deploy(project, [main, "a".repeat(40)], { PATH: join(project.root, "tmp") });
  assert.equal(code, 1);
  assert.equal(
    output,
    "==> Pull\nFAILED: git is missing. Install it (Debian: apt-get install git) and deploy again.\n",
  );
});

test("a private remote without credentials fails without asking for any", async (t) => {
  const project = await makeProject(t);
  const server = createServer((_request, response) => {
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="git"' }).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const url = `http://127.0.0.1:${address.port}/shop.git`;
  await git(project, project.checkout, "remote", "set-url", "origin", url);
  const { code, output } = await deploy(project, [main, "a".repeat(40)]);
  assert.equal(code, 1);
  assert.match(output, /terminal prompts disabled/);
  assert.match(output, /FAILED: git could not fetch main from origin, for the reason above/);
});
