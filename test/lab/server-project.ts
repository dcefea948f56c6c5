import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { chmod, chown, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectNetwork, serverFilesAt, serviceAlias } from "../../src/config/server.ts";
import type { Machine, Owner } from "./lab-server-files.ts";
import type { LoadResult } from "./load.ts";
import { type Behaviour, dockerIn, type Ending, endOf, listContainers, removeFromEngine } from "./project.ts";
import { spawnHotpush } from "./spawn-hotpush.ts";
import { underLoad } from "./under-load.ts";

/** A checkout on the server, with one service, `web`. */
export interface ServerProject {
  readonly name: string;
  readonly origin: string;
  readonly directory: string;
  /** Writes the sources of a version. */
  readonly write: (version: string, behaviour: Behaviour) => Promise<void>;
  /** Starts a command of Hotpush as its deploy script does. */
  readonly script: (...args: readonly string[]) => ChildProcess;
  /** The same as root does by hand, without a state directory; or as another user. */
  readonly byHand: (args: readonly string[], user?: Owner | null) => ChildProcess;
  /** Writes a version and rolls it out as a script; each has a commit of its own. */
  readonly deploy: (version: string, behaviour: Behaviour, ...args: readonly string[]) => Promise<Ending>;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** The names of its containers, running or not. */
  readonly containers: () => Promise<readonly string[]>;
  /** The version that answers through the proxy. */
  readonly version: () => Promise<string>;
  /** Does `work` under load; no request may fail. */
  readonly underLoad: (work: () => Promise<void>) => Promise<LoadResult>;
  readonly remove: () => Promise<void>;
}

/** Adds a project to the server. Nothing of it runs yet. */
export async function makeServerProject(
  machine: Machine,
  name: string,
  { owner = null, replicas = 1 }: { readonly owner?: Owner | null; readonly replicas?: number } = {},
): Promise<ServerProject> {
  const origin = `http://127.0.0.1:${await machine.add(name, owner, replicas)}`;
  const directory = await mkdtemp(join(tmpdir(), `hotpush-${name}-`));
  await cp(join(import.meta.dirname, "app"), join(directory, "app"), { recursive: true });
  await writeFile(join(directory, "compose.yaml"), JSON.stringify(composeFile(name, origin, replicas)));
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
  const write: ServerProject["write"] = (version, behaviour) =>
    writeFile(join(directory, "app", "behaviour.json"), JSON.stringify({ version, behaviour }));
  const script: ServerProject["script"] = (...args) => spawnAs(scriptEnv, args, owner);
  let commit = 0;
  return {
    name,
    origin,
    directory,
    write,
    script,
    byHand: (args, user = null) => spawnAs(byHandEnv, args, user),
    deploy: async (version, behaviour, ...args) => {
      await write(version, behaviour);
      commit += 1;
      const digits = commit.toString(16).padStart(12, "0").padEnd(40, "c");
      return endOf(script("rollout", "--commit", digits, ...args));
    },
    docker,
    containers: async () =>
      (await listContainers(docker, name, "web")).map((line) => line.split(" ")[0] ?? ""),
    version: async () => {
      const response = await fetch(origin, { headers: { connection: "close" } });
      assert.equal(response.status, 200);
      return (await response.text()).split(" ")[0] ?? "";
    },
    underLoad: (work) => underLoad(origin, work),
    remove: async () => {
      await removeFromEngine(docker, name);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** As a person has it, with a port of its own, which Caddy takes over. */
function composeFile(name: string, origin: string, replicas: number): object {
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
    deploy: { replicas },
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
