import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isMap, isScalar, isSeq, parseDocument } from "yaml";
import { projectVariables } from "../../config/project.ts";
import { type Container, listContainers } from "../../platform/docker/container.ts";
import { connectEngine, type Engine, filteredBy, getJson } from "../../platform/docker/engine.ts";
import { ownComposeFile, ownEnvFile } from "../compose-file.ts";
import { SetupError } from "../setup-error.ts";

/** A project as an earlier version set it up: with Hotpush, and often Caddy, in its own compose project. */
export interface OldSetup {
  readonly root: string;
  /** null: none of its containers is there. */
  readonly composeProject: string | null;
  readonly hotpush: Container | null;
  readonly caddy: Container | null;
  /** The ports of the machine that the two have. */
  readonly ports: readonly OldPort[];
  /** The names of the volumes that only the two use. */
  readonly volumes: readonly string[];
  /** Settings of the project that a person has added to `.env`, by name. */
  readonly settings: Readonly<Record<string, string>>;
  /** The text of hotpush.env, with variables for scripts; null: there is none. */
  readonly scriptEnv: string | null;
}

export interface OldPort {
  readonly port: number;
  /** "": on all addresses of the machine. */
  readonly address: string;
}

/**
 * Finds what an earlier version set up for the project in `root`.
 *
 * @param dotenv the variables of its `.env`
 * @returns null if there is no such set-up
 * @throws SetupError if it cannot be read, ProblemError `docker_unreachable`
 */
export async function findOldSetup(
  root: string,
  dotenv: Readonly<Record<string, string | undefined>>,
  env: NodeJS.ProcessEnv,
): Promise<OldSetup | null> {
  const text = readIfThere(join(root, ownComposeFile));
  const services = text === null ? null : readOwnServices(text);
  if (!services?.has("hotpush")) return null;
  const names = [...services.keys()];
  const caddyName = names.find((name) => services.get(name)?.volumes.some((one) => one.endsWith(":/data")));
  const engine = connectEngine(env.DOCKER_HOST);
  const composeProject = await findComposeProject(engine, root);
  const find = async (service: string | undefined) =>
    composeProject === null || service === undefined
      ? null
      : ((await listContainers(engine, composeProject, service)).at(-1) ?? null);
  const [hotpush, caddy] = [await find("hotpush"), await find(caddyName)];
  const own = [hotpush, caddy].filter((container) => container !== null);
  return {
    ...{ root, composeProject, hotpush, caddy },
    ports: ["hotpush", caddyName ?? ""].flatMap((name) => services.get(name)?.ports ?? []),
    volumes: [...new Set(own.flatMap(volumesOf))],
    settings: addedSettings(dotenv),
    scriptEnv: readIfThere(join(root, ownEnvFile)),
  };
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new SetupError(`${path} exists but cannot be read (${code ?? "unknown error"}).`);
  }
}

interface OwnService {
  readonly ports: readonly OldPort[];
  readonly volumes: readonly string[];
}

function readOwnServices(text: string): ReadonlyMap<string, OwnService> {
  const services = parseDocument(text, { logLevel: "silent" }).get("services");
  if (!isMap(services)) return new Map();
  const read = ({ key, value }: (typeof services.items)[number]) => {
    const list = (name: string) => {
      const found = isMap(value) ? value.get(name) : undefined;
      return isSeq(found) ? found.items.flatMap((item) => (isScalar(item) ? [String(item.value)] : [])) : [];
    };
    return [String(key), { ports: list("ports").flatMap(readPort), volumes: list("volumes") }] as const;
  };
  return new Map(services.items.map(read));
}

/** Reads `8080:80`, `127.0.0.1:8080:80` and `[::1]:8080:80`. A UDP port goes with the TCP port of its number. */
function readPort(text: string): readonly OldPort[] {
  const [, address = "", port] = /^(?:(.+):)?(\d+):\d+$/.exec(text) ?? [];
  return port === undefined ? [] : [{ port: Number(port), address: address.replace(/^\[(.*)\]$/, "$1") }];
}

async function findComposeProject(engine: Engine, root: string): Promise<string | null> {
  const label = [`com.docker.compose.project.working_dir=${root}`, "com.docker.compose.service=hotpush"];
  const path = `/containers/json?all=1&${filteredBy({ label })}`;
  const found = await getJson<readonly { readonly Labels: Readonly<Record<string, string>> }[]>(engine, path);
  return found[0]?.Labels["com.docker.compose.project"] ?? null;
}

function volumesOf({ mounts }: Container): readonly string[] {
  return mounts.filter(({ type }) => type === "volume").map(({ name }) => name);
}

/** `init` plans the others. */
const plannedSettings = ["REPO_PATH", "REPOSITORY", "BRANCH"];

function addedSettings(dotenv: Readonly<Record<string, string | undefined>>): OldSetup["settings"] {
  const names = [...Object.keys(projectVariables), "WEBHOOK_SECRET_PREVIOUS"];
  const added = names.filter((name) => !plannedSettings.includes(name));
  return Object.fromEntries(added.flatMap((name) => (dotenv[name] ? [[name, dotenv[name]]] : [])));
}
