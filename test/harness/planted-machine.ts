/**
 * `node test/harness/planted-machine.ts <command> …`: runs tests on a machine that looks as if Hotpush were set up on it,
 * and fails if they see any of it. It plants a server in `/etc/hotpush` and `/var/lib/hotpush`, the socket of a Docker
 * engine, a home directory, and variables. What is there already stays as it is, and is not watched.
 *
 * Exits as the command does, or with 3 if something planted was read, changed, or connected to.
 */
import { spawn } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Of a directory that a run before left behind because it was killed. */
const mark = ".planted-by-tests";
const touchedCode = 3;
const longAgo = new Date("2001-01-01");

const isRoot = process.getuid?.() === 0;
const own = mkdtempSync(join(tmpdir(), "planted-"));
const home = join(own, "home");
const servers: Server[] = [];
const touched = new Set<string>();

const directories = [own, ...(isRoot ? ["/etc/hotpush", "/var/lib/hotpush"].filter(plantDirectory) : [])];
plantFiles();
const sockets = [
  ...["state", "run", "socket"].map((name) => join(own, name)),
  ...(directories.includes("/var/lib/hotpush") ? ["run", "socket", "."] : []).map((name) =>
    join("/var/lib/hotpush", name),
  ),
].flatMap((place) => ["control.sock", "front.sock"].map((name) => join(place, name)));
for (const path of [...sockets, join(own, "docker.sock"), ...dockerSocket()]) await plantSocket(path);
const before = agedFiles();
const code = await run(process.argv.slice(2));
for (const [path, state] of before) if (stateOf(path) !== state) touched.add(path);
for (const server of servers) await new Promise((resolve) => server.close(resolve));
for (const path of directories) rmSync(path, { recursive: true, force: true });
if (touched.size > 0) console.log(`Tests saw what this machine has:\n  ${[...touched].sort().join("\n  ")}`);
process.exitCode = touched.size > 0 ? touchedCode : code;

function plantDirectory(path: string): boolean {
  if (existsSync(join(path, mark))) rmSync(path, { recursive: true });
  if (existsSync(path)) return false;
  mkdirSync(path);
  writeFileSync(join(path, mark), "");
  return true;
}

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
  if (directories.includes("/etc/hotpush")) plant("/etc/hotpush", server);
  if (directories.includes("/var/lib/hotpush")) plant("/var/lib/hotpush", { "run/hotpush.db": "not yours" });
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
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text, { mode: 0o755 });
  }
}

function dockerSocket(): readonly string[] {
  return isRoot && !existsSync("/var/run/docker.sock") ? ["/var/run/docker.sock"] : [];
}

async function plantSocket(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer((socket) => {
    touched.add(path);
    socket.destroy();
  });
  servers.push(server);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
}

/** Every file and directory that was planted, as it is when nobody has read it since. */
function agedFiles(): ReadonlyMap<string, string> {
  const probe = join(own, "probe");
  const paths = directories.flatMap((path) => [path, ...within(path)]).filter((path) => path !== own);
  writeFileSync(probe, "probe");
  // A file system with `relatime` notes a read if the one before is older than the last change.
  for (const path of [...paths, probe]) utimesSync(path, longAgo, new Date());
  const aged = stateOf(probe);
  readFileSync(probe);
  if (stateOf(probe) === aged)
    console.log("This file system does not note reads: only connections and changes are seen.");
  return new Map(paths.map((path) => [path, stateOf(path)]));
}

function within(directory: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  // A connection is seen by itself.
  return entries.filter((one) => !one.isSocket()).map((one) => join(one.parentPath, one.name));
}

function stateOf(path: string): string {
  try {
    const { atimeMs, ctimeMs } = lstatSync(path);
    return `${atimeMs} ${ctimeMs}`;
  } catch {
    return "gone";
  }
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
  return await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (ended) => resolve(ended ?? 1));
  });
}
