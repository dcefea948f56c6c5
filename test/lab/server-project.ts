import "../harness/environment.ts";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, chown, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  projectNetwork,
  serverComposeProject,
  serverFilesAt,
  serverStateAt,
  serviceAlias,
} from "../../src/config/server.ts";
import { sendHttp } from "../../src/platform/http.ts";
import { countingLines, indented } from "../../src/rollout/requests.ts";
import { openRequestsDirectory } from "../../src/setup/reconcile.ts";
import { freePort } from "../harness/listen.ts";
import { underLoad } from "./load.ts";
import {
  type Behaviour,
  dockerIn,
  endOf,
  listContainers,
  removeFromEngine,
  spawnHotpush,
} from "./project.ts";

/** A checkout on the server, with one service, `web`. */
export type ServerProject = Awaited<ReturnType<typeof makeServerProject>>;

/** Adds a project to the server. Nothing of it runs yet. */
export async function makeServerProject(machine: Machine, name: string, owner: Owner | null = null) {
  const origin = `http://127.0.0.1:${await machine.add(name, owner)}`;
  const directory = await mkdtemp(join(tmpdir(), `hotpush-${name}-`));
  await cp(join(import.meta.dirname, "app"), join(directory, "app"), { recursive: true });
  await writeFile(join(directory, "compose.yaml"), JSON.stringify(composeFile(name, origin)));
  await writeFile(join(directory, "compose.hotpush.yaml"), override(name));
  await writeFile(join(directory, ".env"), "COMPOSE_FILE=compose.yaml:compose.hotpush.yaml\n");
  const { projectsPath } = serverFilesAt(machine.path);
  await mkdir(projectsPath, { recursive: true });
  await writeFile(join(projectsPath, `${name}.env`), `REPO_PATH=${directory}\n`);
  const byHandEnv = {
    ...machine.env,
    HOTPUSH_MIN_FREE: "1 MiB",
    STATE_PATH: "",
    BUILDX_CONFIG: join(directory, ".buildx"),
  };
  const scriptEnv = { ...byHandEnv, STATE_PATH: machine.statePathOf(name) };
  // Compose, too, writes to its user's directories.
  const ownHome = { HOME: directory, TMPDIR: directory, BUILDX_CONFIG: join(directory, ".buildx") };
  const spawnAs = (env: NodeJS.ProcessEnv, args: readonly string[], user: Owner | null) =>
    spawnHotpush(directory, { ...env, ...(user && ownHome) }, args, user ?? {});
  await chmod(directory, 0o755);
  if (owner !== null) await chown(directory, owner.uid, owner.gid);
  const docker = dockerIn(directory, machine.env);
  const write = (version: string, behaviour: Behaviour) =>
    writeFile(join(directory, "app", "behaviour.json"), JSON.stringify({ version, behaviour }));
  const script = (...args: readonly string[]) => spawnAs(scriptEnv, args, owner);
  let commit = 0;
  return {
    name,
    origin,
    directory,
    /** Writes the sources of a version. */
    write,
    /** Starts a command of Hotpush as its deploy script does. */
    script,
    /** The same as root does by hand, without a state directory; or as another user. */
    byHand: (args: readonly string[], user: Owner | null = null) => spawnAs(byHandEnv, args, user),
    /** Writes a version and rolls it out as a script; each has a commit of its own. */
    deploy: async (version: string, behaviour: Behaviour, ...args: readonly string[]) => {
      await write(version, behaviour);
      commit += 1;
      const digits = commit.toString(16).padStart(12, "0").padEnd(40, "c");
      return endOf(script("rollout", "--commit", digits, ...args));
    },
    docker,
    /** The names of its containers, running or not. */
    containers: async () =>
      (await listContainers(docker, name, "web")).map((line) => line.split(" ")[0] ?? ""),
    /** The version that answers through the proxy. */
    version: async () => {
      const response = await fetch(origin, { headers: { connection: "close" } });
      assert.equal(response.status, 200);
      return (await response.text()).split(" ")[0] ?? "";
    },
    /** Does `work` under load; no request may fail. */
    underLoad: (work: () => Promise<void>) => underLoad(origin, work),
    remove: async () => {
      await removeFromEngine(docker, name);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** As a person has it, with a port of its own, which Caddy takes over. */
function composeFile(name: string, origin: string): object {
  const web = {
    build: "app",
    restart: "unless-stopped",
    stop_grace_period: "20s",
    ports: ["8080:8080"],
    healthcheck: {
      test: ["CMD", "./healthcheck.sh"],
      interval: "5s",
      start_period: "30s",
      start_interval: "500ms",
    },
    labels: { "hotpush.check": `${origin}/`, "hotpush.healthy-timeout": "10s", "hotpush.guard": "0" },
  };
  return { name, services: { web } };
}

function override(name: string): string {
  return `services:
  web:
    ports: !reset []
    networks:
      default: {}
      hotpush:
        aliases: [${serviceAlias("web", name)}]
networks:
  hotpush:
    name: ${projectNetwork(name)}
    external: true
`;
}

const run = promisify(execFile);

/** The user whose checkout a project is. */
export interface Owner {
  readonly uid: number;
  /** May use the Docker socket. */
  readonly gid: number;
}

/** What a roll-out needs of the server: Caddy, with the sites, networks and live directories of its projects. */
export type Machine = Awaited<ReturnType<typeof makeMachine>>;

/** Starts a server on the engine, which may have only one, with room for as many projects as there are `ports`. */
export async function makeMachine(labEnv: NodeJS.ProcessEnv, projectCount: number) {
  const path = await mkdtemp(join(tmpdir(), "hotpush-machine-"));
  await chmod(path, 0o755);
  const env = { ...labEnv, SERVER_PATH: path };
  const files = serverFilesAt(path);
  const state = serverStateAt(join(path, "state"));
  const ports = await Promise.all(Array.from({ length: projectCount }, () => freePort()));
  const adminSocket = join(state.live, "admin.sock");
  const docker = (...args: readonly string[]) => run("docker", args, { env, cwd: path });
  const projects: string[] = [];

  /** Adds a project with a service `web`. @returns the port at which Caddy serves it */
  const add = async (project: string, owner: Owner | null) => {
    const port = ports[projects.push(project) - 1];
    if (port === undefined) throw new Error("no port is left");
    await docker("network", "create", projectNetwork(project));
    await docker("network", "connect", projectNetwork(project), `${serverComposeProject}-caddy-1`);
    await mkdir(join(state.live, project));
    await mkdir(join(state.projects, project), { mode: 0o700 });
    await writeFile(join(state.live, project, "web"), serviceAlias("web", project));
    if (owner !== null)
      for (const path of [state.live, state.projects]) await chown(join(path, project), owner.uid, owner.gid);
    await writeFile(join(files.sitesPath, `${project}.caddy`), site(port, project));
    await load(adminSocket, files.caddyfile);
    return port;
  };

  await Promise.all(
    [files.sitesPath, state.live, state.caddy, state.projects].map((one) => mkdir(one, { recursive: true })),
  );
  openRequestsDirectory(state.live);
  await writeFile(files.composeFile, JSON.stringify(serverCompose(ports)));
  await writeFile(files.caddyfile, caddyfile);
  await writeFile(files.envFile, `STATE_PATH=${state.path}\n`);
  await docker("compose", "up", "--detach", "--wait");
  return {
    /** Names the server's directory, as a command by hand needs it. */
    env,
    /** SERVER_PATH */
    path,
    add,
    /** The name in a live file. */
    live: async (project: string, file: string) =>
      (await readFile(join(state.live, project, file), "utf8")).trim(),
    /** STATE_PATH of the project's scripts. */
    statePathOf: (project: string) => join(state.projects, project),
    remove: async () => {
      await docker("compose", "down", "--volumes");
      for (const project of projects) await docker("network", "rm", projectNetwork(project)).catch(() => {});
      await rm(path, { recursive: true, force: true });
    },
  };
}

/** The live directory is where Caddy and Hotpush meet. */
function serverCompose(ports: readonly number[]): object {
  const caddy = {
    image: "caddy:2",
    restart: "unless-stopped",
    ports: ports.map((port) => `127.0.0.1:${port}:${port}`),
    volumes: [
      "./Caddyfile:/etc/caddy/Caddyfile:ro",
      "./sites:/etc/caddy/sites:ro",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it
      "${STATE_PATH}/live:/run/live",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it
      "${STATE_PATH}/caddy:/data",
    ],
    networks: ["hotpush"],
    healthcheck: {
      test: ["CMD", "test", "-S", "/run/live/admin.sock"],
      start_period: "10s",
      start_interval: "200ms",
    },
  };
  // A roll-out finds the server's directories by the container of run, also a stopped one. Nothing else of it is needed.
  const run = {
    image: "caddy:2",
    command: ["sleep", "infinity"],
    init: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it
    environment: { SERVER_STATE_PATH: "${STATE_PATH}" },
  };
  return {
    name: serverComposeProject,
    services: { caddy, run },
    networks: { hotpush: { name: serverComposeProject } },
  };
}

const caddyfile = `{
	admin unix//run/live/admin.sock|0666
	grace_period 30s
}
(service) {
${indented(countingLines("/run/live", "{args[0]}"), 1)}
	reverse_proxy {file./run/live/{args[0]}/{args[1]}}:{args[2]} {
		lb_try_duration 5s
		lb_try_interval 50ms
	}
	import unreached {args[:]}
}
(unreached) {
	handle_errors 502 503 {
		@unreached expression \`{err.message}.contains("dial")\`
		handle @unreached {
			reverse_proxy {args[1]}.{args[0]}.containers.internal:{args[2]} {
				lb_try_duration 10s
			}
		}
	}
}
import /etc/caddy/sites/*.caddy
`;

function site(port: number, project: string): string {
  return `http://:${port} {\n\timport service ${project} web 8080\n}\n`;
}

async function load(socketPath: string, file: string): Promise<void> {
  const headers = { host: "localhost", "content-type": "text/caddyfile" };
  const body = await readFile(file, "utf8");
  const answer = await sendHttp({ socketPath, path: "/load" }, { method: "POST", headers, body });
  if (answer.status !== 200) throw new Error(answer.body.toString());
}
