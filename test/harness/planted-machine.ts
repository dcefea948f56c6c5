/**
 * `node test/harness/planted-machine.ts <command> …`: runs tests on a machine that looks as if Hotpush were set up on it,
 * and fails if they see any of it. It plants a server in `/etc/hotpush` and `/var/lib/hotpush`, the socket of a Docker
 * engine, a home directory, and variables. What is there already stays as it is, and is not watched. A file system without
 * times of reading shows only connections and changes.
 *
 * Exits as the command does, or with 3 if something planted was read, changed, or connected to.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const touchedCode = 3;
const longAgo = new Date("2001-01-01");
const [etc, lib, dockerSocket] = ["/etc/hotpush", "/var/lib/hotpush", "/var/run/docker.sock"] as const;

const own = mkdtempSync(join(tmpdir(), "planted-"));
const home = join(own, "home");
const isFree = (path: string) => process.getuid?.() === 0 && !existsSync(path);
const directories = [own, ...[etc, lib].filter(isFree)];
const touched = new Set<string>();

plantFiles();
const sockets = [
  ...["state", "run", "socket"].map((name) => join(own, name)),
  join(lib, "run"),
  join(lib, "socket"),
  lib,
]
  .filter((place) => directories.some((directory) => place.startsWith(directory)))
  .flatMap((place) => [join(place, "control.sock"), join(place, "front.sock")]);
const servers = [...sockets, join(own, "docker.sock"), ...[dockerSocket].filter(isFree)].map(plantSocket);
await Promise.all(servers.map((server) => once(server, "listening")));
const before = agedFiles();
const code = await run(process.argv.slice(2));
for (const [path, state] of before) if (stateOf(path) !== state) touched.add(path);
for (const server of servers) server.close();
for (const path of directories) rmSync(path, { recursive: true, force: true });
if (touched.size > 0) console.log(`Tests saw what this machine has:\n  ${[...touched].sort().join("\n  ")}`);
process.exitCode = touched.size > 0 ? touchedCode : code;

/** A server whose project is everywhere, and the settings of programs in a home directory. */
function plantFiles(): void {
  const project = `REPO_PATH=/\nWEBHOOK_SECRET=${"5".repeat(64)}\n`;
  const server = {
    ".env": "STATE_PATH=/var/lib/hotpush\nHTTP_PORT=80\nPAGE_URL=https://hotpush.example.com\n",
    "compose.yaml": "name: hotpush\nservices:\n  run:\n    image: hotpush\n",
    Caddyfile: "import sites/*.caddy\n",
    "sites/shop.caddy": "shop.example.com {\n}\n",
    "projects/shop.env": project,
    "secrets/shop.env": "TOKEN=of-this-machine\n",
  };
  plant(etc, server);
  plant(lib, { "run/hotpush.db": "not yours" });
  plant(join(own, "server"), { ...server, ".env": `STATE_PATH=${own}\n` });
  plant(own, { "state/hotpush.db": "not yours", "projects/shop.env": project, "variables/.env": project });
  plant(home, {
    ".docker/config.json": JSON.stringify({ auths: { "registry.example": { auth: "b2N0bzpvY3Rv" } } }),
    ".docker/cli-plugins/docker-compose": "not yours",
    ".config/hotpush/compose.yaml": "name: hotpush\n",
    ".config/hotpush/projects/shop.env": project,
    ".config/git/config": "[user]\n\tname = Not Yours\n",
    ".gitconfig": "[commit]\n\tgpgSign = true\n[user]\n\tname = Not Yours\n",
    ".local/state/hotpush/hotpush.db": "not yours",
  });
}

function plant(directory: string, files: Readonly<Record<string, string>>): void {
  if (!directories.some((one) => directory.startsWith(one))) return;
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text, { mode: 0o755 });
  }
}

function plantSocket(path: string) {
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer((socket) => {
    touched.add(path);
    socket.destroy();
  });
  return server.listen(path);
}

/** Every file and directory that was planted, as it is when nobody has read it since. */
function agedFiles(): ReadonlyMap<string, string> {
  const entries = directories.flatMap((path) => readdirSync(path, { recursive: true, withFileTypes: true }));
  // A connection to a socket is seen by itself.
  const inside = entries.filter((one) => !one.isSocket()).map((one) => join(one.parentPath, one.name));
  const paths = [...directories.slice(1), ...inside];
  // A file system with `relatime` notes a read if the one before is older than the last change.
  for (const path of paths) utimesSync(path, longAgo, new Date());
  return new Map(paths.map((path) => [path, stateOf(path)]));
}

function stateOf(path: string): string {
  const state = lstatSync(path, { throwIfNoEntry: false });
  return state ? `${state.atimeMs} ${state.ctimeMs}` : "gone";
}

/** @returns the exit code */
async function run([program = "true", ...args]: readonly string[]): Promise<number> {
  const { HOME = "/", npm_config_userconfig, npm_config_cache } = process.env;
  const env = {
    ...process.env,
    // npm itself needs to know its registry.
    npm_config_userconfig: npm_config_userconfig ?? join(HOME, ".npmrc"),
    npm_config_cache: npm_config_cache ?? join(HOME, ".npm"),
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_STATE_HOME: join(home, ".local/state"),
    XDG_RUNTIME_DIR: own,
    DOCKER_HOST: `unix://${own}/docker.sock`,
    DOCKER_CONFIG: join(home, ".docker"),
    SERVER_PATH: join(own, "server"),
    STATE_PATH: join(own, "state"),
    PROJECTS_PATH: join(own, "projects"),
    REPO_PATH: "/",
    WEBHOOK_SECRET: "5".repeat(64),
    WEBHOOK_PORT: "1",
    BRANCH: "master",
    HOTPUSH_SERVER: "https://hotpush.example.com",
    HOTPUSH_TOKEN_FILE: join(own, "variables/.env"),
    GIT_CONFIG_GLOBAL: join(home, ".gitconfig"),
    COMPOSE_FILE: join(own, "server/compose.yaml"),
    COMPOSE_PROJECT_NAME: "hotpush",
  };
  const child = spawn(program, args, { env, stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const [ended]: (number | null)[] = await once(child, "exit");
  return ended ?? 1;
}
