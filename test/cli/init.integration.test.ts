import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openTestTerminal, runCli } from "../harness/hotpush.ts";
import { listenAt } from "../harness/listen.ts";
import { makeRepository } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

const port = (target: number, published: string) => ({ mode: "ingress", target, published, protocol: "tcp" });
/** The compose file as compose reads it. */
const model = {
  services: {
    db: { image: "postgres:17", ports: [port(5432, "18183")] },
    web: { build: { context: "/elsewhere" }, networks: { default: null }, ports: [port(3000, "18182")] },
  },
};

const url = ["--url", "https://shop.example.org"];

/**
 * A project for `hotpush init`, on a server that has none yet: a repository with a remote at GitHub, and a stand-in for Docker's
 * command line, without a container and an image. The real one is in test/e2e/clean-server.test.ts.
 */
function makeProject(t: TestContext) {
  const repository = makeRepository(t, "shop");
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  repository.write("compose.yaml", "services:\n  web:\n    build: web\n    ports: ['18182:3000']\n");
  repository.commit();
  // No host is contacted: the remote's HEAD is as after git clone.
  repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main");
  const bin = temporaryDirectory(t);
  const answer = ({ version = "2.40.3", config = `echo '${JSON.stringify(model)}'` } = {}) => {
    const cases = `*"compose version"*) echo ${version} ;; *config*) ${config} ;; "ps "*) ;; *) exit 1 ;;`;
    writeScript(join(bin, "docker"), `#!/bin/sh\ncase "$*" in ${cases} esac\n`);
  };
  answer();
  const env: Record<string, string> & { readonly SERVER_PATH: string; readonly DOCKER_HOST: string } = {
    GIT_SSH_COMMAND: "false",
    PATH: `${bin}:${process.env.PATH}`,
    DOCKER_HOST: `unix://${join(bin, "docker.sock")}`,
    SERVER_PATH: join(bin, "hotpush"),
    // Nothing listens there.
    HTTP_PORT: "18180",
    HTTPS_PORT: "18181",
  };
  const init = (...args: readonly string[]) => runCli(["init", ...args], { cwd: repository.directory, env });
  return { repository, init, env, answer };
}

test("init says what it found, what it writes, and what happens to each published port", async (t) => {
  const { repository, env, init } = makeProject(t);
  const { stdout } = await init(...url);
  const shown = stdout
    .replace(/--- \S+\n[\s\S]*?\n\n/, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(repository.directory, "<checkout>")
    .replaceAll(env.SERVER_PATH, "<server>");
  assert.equal(shown.trim().replaceAll(/ (?=- |(?:new|changed|In|Remote|Server) )/g, "\n"), shownPlan.trim());
});

test("init names what is edited and not committed, and would be discarded", async (t) => {
  const { repository, init } = makeProject(t);
  repository.write("compose.yaml", "services: {}\n");
  repository.write("data/new.txt", "");
  const said =
    /is edited here and not committed is discarded by the first deployment: compose\.yaml\. Commit/;
  assert.match((await init(...url)).stdout.replaceAll(/\s+/g, " "), said);
});

test("a second host name of a service is refused with the lines for it, and a lost page is named", async (t) => {
  const { init } = makeProject(t);
  const names = ["--at", "web=shop.example.org", "--at", "web=www.shop.example.org"];
  const { stderr } = await init(...url, ...names);
  assert.match(
    stderr,
    /one host name.*:\nwww\.shop\.example\.org \{\n\tredir https:\/\/shop\.example\.org\{uri\}\n\}/,
  );
  const { stdout } = await init(...url, "--at", "web=www.shop.example.org");
  assert.match(stdout.replaceAll(/\s+/g, " "), /At shop\.example\.org itself there is no page then/);
});

/** Without the breaks of lines. */
const shownPlan = `
Project shop, in <checkout>
Remote github.com, octo/shop
Server <server>, which is made now: Caddy and Hotpush for all projects
In <server>, for all projects of this server:
new compose.yaml Caddy, and Hotpush in containers
new Caddyfile what the sites of all projects import
new .env the values of this machine
new projects/shop.env the project, and its secret
new sites/shop.caddy its addresses
In <checkout>:
new deploy.sh pulls, builds, replaces, checks; yours to change
new compose.override.yaml your services as Caddy reaches them
changed .git/info/exclude compose.override.yaml: this machine's alone
- Caddy serves web (port 3000 in its container) at shop.example.org. Before, it was published at 18182.
- Port 18183 of db stays published: the number in its container is that of another protocol.
`;

test(
  "at a terminal init asks for the address until it gets one; Ctrl-C writes nothing",
  needs("tmux"),
  async (t) => {
    const { repository, env } = makeProject(t);
    const { type, press, waitFor } = openTestTerminal(t, env);
    type(`cd ${repository.directory} && clear && hotpush init; echo "ended with $?"`);
    await waitFor(/Address:$/);
    type("shop example");
    await waitFor(/That is not an address\./);
    press("C-c");
    assert.match(await waitFor(/ended with 1/), /^hotpush: Nothing more was written\.$/m);
    assert.deepEqual([join(repository.directory, ".env"), env.SERVER_PATH].filter(existsSync), []);
  },
);

type Project = ReturnType<typeof makeProject>;

/** What init refuses, and the reason; `change`: what a person did to the project or its machine. */
const refusals: readonly (readonly [what: string, reason: RegExp, change: (project: Project) => unknown])[] =
  [
    [
      "a project without a compose file",
      /no compose file in .*: \S+ begins with the commands/,
      ({ repository }) => repository.git("rm", "--quiet", "compose.yaml"),
    ],
    [
      "a service that is called as ours",
      /has a service called hotpush/,
      ({ answer }) => answer({ config: `echo '{"services":{"hotpush":{}}}'` }),
    ],
    [
      "a compose file whose directory compose takes for the project's",
      /COMPOSE_FILE in \.env names deploy\/compose\.yaml first/,
      ({ repository: { write } }) => {
        write(".gitignore", ".env\n");
        write(".env", "COMPOSE_FILE=deploy/compose.yaml\n");
      },
    ],
    [
      "a list of compose files with a variable in it",
      /COMPOSE_FILE in \.env is compose\.yaml:\$STAGE\.yaml/,
      ({ repository: { write } }) => {
        write(".gitignore", ".env\n");
        write(".env", "\uFEFFCOMPOSE_FILE=compose.yaml:$STAGE.yaml\n");
      },
    ],
    [
      "a linked worktree, whose branches are another checkout's too",
      /its \.git is a file that leads to the repository, .*: git clone "\$\(git remote get-url origin\)" <directory>/,
      ({ repository: { directory, git } }) => {
        git("worktree", "add", "--quiet", "--detach", `${directory}-linked/shop`);
        renameSync(directory, `${directory}-main`);
        renameSync(`${directory}-linked/shop`, directory);
        execFileSync("git", ["-C", `${directory}-main`, "worktree", "repair", directory], { stdio: "pipe" });
      },
    ],
    [
      "a repository outside of its checkout, which is moved there by the command",
      /The repository of (\S+) is outside of it, in (\S+); .*: cd \1 && rm \.git && mv \2 \.git\s*$/,
      ({ repository: { directory, git } }) =>
        git("init", "--quiet", "--separate-git-dir", `${directory}-apart`),
    ],
    [
      "a server whose Caddyfile lacks what the site imports",
      /sites\/shop\.caddy would import deliveries, .*: hotpush upgrade\s*$/,
      ({ env: { SERVER_PATH } }) => {
        mkdirSync(SERVER_PATH);
        writeFileSync(join(SERVER_PATH, "Caddyfile"), "(service) {\n}\n");
      },
    ],
    [
      "a link in the place of a file",
      /compose\.override\.yaml is a link or a directory/,
      ({ repository }) =>
        symlinkSync("/nonexistent/secrets", join(repository.directory, "compose.override.yaml")),
    ],
    [
      "an engine on another machine",
      /run this on the server itself/,
      ({ env }) => Object.assign(env, { DOCKER_HOST: "tcp://10.0.0.1:2376" }),
    ],
    [
      "what compose cannot read, in compose's words",
      /services\.web\.image must be a string/,
      ({ answer }) => answer({ config: "echo 'services.web.image must be a string' >&2; exit 15" }),
    ],
    [
      "an old compose",
      /Docker Compose is 2\.20\.0 here; 2\.24\.4 or newer is needed/,
      ({ answer }) => answer({ version: "2.20.0" }),
    ],
  ];

for (const [what, reason, change] of refusals)
  test(`init refuses ${what}, and writes nothing`, async (t) => {
    const project = makeProject(t);
    change(project);
    const status = () => project.repository.git("status", "--porcelain", "--ignored");
    const before = status();
    const { code, stderr } = await project.init("--yes", ...url);
    assert.deepEqual([code, reason.test(stderr.replace(/\s+/g, " "))], [1, true], stderr);
    assert.equal(status(), before);
  });

test("a removed project's name, and so its history, and its secret are only for its checkout", async (t) => {
  const secret = "5".repeat(64);
  for (const [checkout, name] of [
    ["/srv/other", "octo-shop"],
    [null, "shop"],
  ] as const) {
    const { repository, env, init } = makeProject(t);
    const at = (file: string) => join(env.SERVER_PATH, file);
    mkdirSync(at("removed/projects"), { recursive: true });
    const settings = `REPO_PATH=${checkout ?? repository.directory}\nWEBHOOK_SECRET=${secret}\n`;
    writeFileSync(at("removed/projects/shop.env"), settings);
    await init(...url);
    assert.deepEqual(readdirSync(at("projects")), [`${name}.env`]);
    const hasSecret = readFileSync(at(`projects/${name}.env`), "utf8").includes(secret);
    assert.equal(hasSecret, checkout === null);
  }
});

test("init needs an address, a checkout, and values that it knows", async (t) => {
  const { init } = makeProject(t);
  assert.match((await init()).stderr, /hotpush init --url https:/);
  const nowhere = await runCli(["init"], { cwd: temporaryDirectory(t) });
  assert.deepEqual([nowhere.code, /is not in a git checkout/.test(nowhere.stderr)], [1, true]);
  assert.equal((await init("--host", "sourceforge")).code, 2);
  assert.equal((await init("--url", "ftp://x")).code, 2);
  assert.equal((await init(...url, "--webhook-path", "hooks/../")).code, 2);
});

test("init refuses an address at which nothing can answer, and writes nothing", async (t) => {
  const { env, init } = makeProject(t);
  assert.equal((await init("--url", "https://shop.example.org/blog")).code, 2);
  const unknown = await init("--yes", "--url", "http://no-such-machine");
  assert.deepEqual([unknown.code, /leads nowhere/.test(unknown.stderr)], [1, true], unknown.stderr);
  Object.assign(env, { HTTP_PORT: "80", HTTPS_PORT: "443" });
  const odd = await init("--yes", "--url", "http://shop.example.org:3000");
  assert.deepEqual([odd.code, /Nothing would answer at/.test(odd.stderr)], [1, true], odd.stderr);
  assert.equal(existsSync(env.SERVER_PATH), false);
});

test("init says that an earlier remote is the only one whose pushes are deployed", async (t) => {
  const { repository, env, init } = makeProject(t);
  mkdirSync(join(env.SERVER_PATH, "projects"), { recursive: true });
  const settings = `REPO_PATH=${repository.directory}\nREPOSITORY=octo/store\n`;
  writeFileSync(join(env.SERVER_PATH, "projects/shop.env"), settings);
  assert.match((await init("--yes", ...url)).stdout, /Only pushes of octo\/store are deployed/);
  repository.git("remote", "set-url", "origin", "git@github.com:octo/store.git");
  assert.doesNotMatch((await init("--yes", ...url)).stdout, /Only pushes of/);
});

test("a remote that only the machine itself reaches, and a rootless engine, are refused before anything is written", async (t) => {
  const { repository, env, init } = makeProject(t);
  repository.git("remote", "set-url", "origin", "http://localhost:3000/octo/shop.git");
  const local = await init(...url, "--yes");
  assert.match(local.stderr, /^hotpush: The remote origin is at localhost\./);
  repository.git("remote", "set-url", "origin", "git@github.com:octo/shop.git");
  const engine = createServer(({ url = "" }, response) => {
    response.end(
      url === "/info" ? JSON.stringify({ SecurityOptions: ["name=seccomp", "name=rootless"] }) : "[]",
    );
  });
  await listenAt(t, engine, env.DOCKER_HOST.replace("unix://", ""));
  const rootless = await init(...url, "--yes");
  assert.match(rootless.stderr, /^hotpush: This Docker engine runs in rootless mode/);
  assert.deepEqual([local.code, rootless.code, existsSync(env.SERVER_PATH)], [1, 1, false]);
});
