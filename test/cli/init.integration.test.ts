import assert from "node:assert/strict";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type CliOptions, openTestTerminal, runCli } from "../harness/hotpush.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

/** The compose file of the project. */
const project = "services:\n  web:\n    build: web\n    ports: ['48182:3000']\n";
/** The compose file as compose reads it. */
const model = {
  services: {
    web: {
      build: { context: "/elsewhere" },
      networks: { default: null },
      ports: [{ mode: "ingress", target: 3000, published: "48182", protocol: "tcp" }],
    },
  },
};

const url = ["--url", "https://shop.example.org"];
/** Nothing listens there. */
const ports = { HTTP_PORT: "48180", HTTPS_PORT: "48181" };

/**
 * A project for `hotpush init`, on a server that has none yet: a repository with a remote at GitHub and, unless it is null, a
 * compose file that compose reads as `services`.
 */
function makeProject(t: TestContext, services: object | null = model) {
  const repository = makeRepository(t, "shop");
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  if (services !== null) repository.write("compose.yaml", project);
  repository.commit();
  const bin = makeDocker(t, services);
  // No host is contacted: the remote's HEAD is as after git clone.
  repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main");
  const env = {
    GIT_SSH_COMMAND: "false",
    PATH: `${bin}:${process.env.PATH}`,
    DOCKER_HOST: `unix://${join(bin, "docker.sock")}`,
    SERVER_PATH: join(bin, "hotpush"),
    ...ports,
  };
  const init = (args: readonly string[] = [], more: Partial<CliOptions> = {}) =>
    runCli(["init", ...args], { cwd: repository.directory, env, ...more });
  return { repository, init, env };
}

/**
 * A stand-in for Docker's command line: it gives the project as compose does, and has no container and no image. The real one is in
 * test/e2e/clean-server.test.ts.
 */
function makeDocker(t: TestContext, services: object | null): string {
  const bin = temporaryDirectory(t);
  writeFileSync(join(bin, "model.json"), JSON.stringify(services));
  const cases = [
    '"compose version"*) echo 2.40.3 ;;',
    `"compose --progress"*) cat ${join(bin, "model.json")} ;;`,
    '"ps "*) ;;',
    '"image inspect"*) exit 1 ;;',
    '*) echo "unexpected: $*" >&2; exit 9 ;;',
  ];
  writeScript(join(bin, "docker"), `#!/bin/sh\ncase "$*" in\n${cases.join("\n")}\nesac\n`);
  return bin;
}

test("init says what it found, what it writes, and what happens to each published port", async (t) => {
  const port = (target: number, published: string) => ({
    mode: "ingress",
    target,
    published,
    protocol: "tcp",
  });
  const services = {
    db: { image: "postgres:17", ports: [port(5432, "48183")] },
    web: { build: { context: "/elsewhere" }, networks: { default: null }, ports: [port(3000, "48182")] },
  };
  const { repository, env, init } = makeProject(t, { services });
  const { stdout } = await init(url);
  const shown = stdout
    .replace(/--- \S+\n[\s\S]*?\n\n/, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(repository.directory, "<checkout>")
    .replaceAll(env.SERVER_PATH, "<server>");
  assert.equal(shown.trim().replaceAll(/ (?=- |(?:new|changed|In|Remote|Server) )/g, "\n"), shownPlan.trim());
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
new compose.hotpush.yaml your services as Caddy reaches them
new .env adds compose.hotpush.yaml to your compose file
changed .git/info/exclude compose.hotpush.yaml and .env: this machine's alone
- Caddy serves web (port 3000 in its container) at shop.example.org. Before, it was published at 48182.
- Port 48183 of db stays published: the number in its container is that of another protocol.
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
    assert.match(await waitFor(/ended with 1/), /^hotpush: Nothing was written\.$/m);
    assert.deepEqual([join(repository.directory, ".env"), env.SERVER_PATH].filter(existsSync), []);
  },
);

/** What init refuses: the project's services, what a person did to it, the options, and the reason. */
const refusals: readonly (readonly [
  what: string,
  services: object | null,
  args: readonly string[],
  reason: RegExp,
  change?: (repository: TestRepository) => void,
])[] = [
  ["a project without a compose file", null, url, /no compose file in .*: \S+ begins with the commands/],
  ["a service that is called as ours", { services: { hotpush: {} } }, url, /has a service called hotpush/],
  ["no address and nobody to ask", model, [], /hotpush init --url https:/],
  [
    "a compose file whose directory compose takes for the project's",
    model,
    url,
    /COMPOSE_FILE in \.env names deploy\/compose\.yaml first/,
    ({ write }) => {
      write(".gitignore", ".env\n");
      write(".env", "COMPOSE_FILE=deploy/compose.yaml\n");
    },
  ],
  [
    "a link in the place of a file",
    model,
    url,
    /\.env is a link or a directory/,
    ({ directory }) => symlinkSync("/nonexistent/secrets", join(directory, ".env")),
  ],
];

for (const [what, services, args, reason, change = () => {}] of refusals)
  test(`init refuses ${what}, and writes nothing`, async (t) => {
    const { repository, init } = makeProject(t, services);
    change(repository);
    const before = repository.git("status", "--porcelain", "--ignored");
    const { code, stderr } = await init(["--yes", ...args]);
    assert.deepEqual([code, reason.test(stderr.replace(/\s+/g, " "))], [1, true], stderr);
    assert.equal(repository.git("status", "--porcelain", "--ignored"), before);
  });

test("init says what it cannot set up, also in compose's words", async (t) => {
  const nowhere = await runCli(["init"], { cwd: temporaryDirectory(t) });
  assert.deepEqual([nowhere.code, /is not in a git checkout/.test(nowhere.stderr)], [1, true]);
  const { init, env } = makeProject(t);
  const { stderr } = await init(url, { env: { ...env, DOCKER_HOST: "tcp://10.0.0.1:2376" } });
  assert.match(stderr, /run this on the server itself/);
  for (const args of [
    ["--host", "sourceforge"],
    ["--url", "ftp://x"],
  ])
    assert.equal((await init(args)).code, 2);
  const docker = join(env.PATH.split(":")[0] ?? "", "docker");
  const failing =
    'case "$*" in *config*) echo "services.web.image must be a string" >&2; exit 15 ;; *"compose version"*) echo 2.40.3 ;; esac';
  writeScript(docker, `#!/bin/sh\n${failing}\n`);
  assert.match((await init()).stderr, /services\.web\.image must be a string$/m);
  writeScript(docker, "#!/bin/sh\necho 2.20.0\n");
  assert.match((await init()).stderr, /Docker Compose is 2\.20\.0 here; 2\.24\.4 or newer is needed/);
});
