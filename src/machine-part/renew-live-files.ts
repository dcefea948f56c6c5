import { lstatSync } from "node:fs";
import { join } from "node:path";
import { serviceAlias } from "../config/machine-part.ts";
import { type Engine, filteredBy, getJson } from "../platform/docker/engine.ts";
import { ownUid } from "../platform/files.ts";
import { listForeignDirectory, readForeignFile, replaceForeignFile } from "../platform/foreign-files.ts";

/** A project has a live file for each replica. */
const mostFiles = 1_000;
const longestNameBytes = 1_000;

/**
 * Writes the service's own name into live files that name a container which is gone. After `docker compose down` and `up` by
 * a person, no roll-out has done it, and Caddy would try the old name for seconds before each request.
 *
 * @throws the system's error, or ProblemError `docker_unreachable`
 */
export async function renewLiveFiles(
  engine: Engine,
  livePath: string,
  projects: readonly string[],
): Promise<void> {
  const files = projects.flatMap((project) => filesNamingContainers(livePath, project));
  if (files.length === 0) return;
  const present = await presentNames(
    engine,
    files.map(({ text }) => text),
  );
  for (const { path, text, alias } of files) {
    // A roll-out may have written another name since.
    if (present.has(text) || readText(path) !== text) continue;
    replaceForeignFile(path, alias, { mode: 0o644, owner: ownUid() === 0 ? lstatSync(path) : null });
  }
}

interface LiveFile {
  readonly path: string;
  readonly text: string;
  /** The name of its service. */
  readonly alias: string;
}

function filesNamingContainers(livePath: string, project: string): readonly LiveFile[] {
  const directory = join(livePath, project);
  const names = namesIn(directory).filter((name) => !name.startsWith("."));
  const files = names.map((name) => {
    const path = join(directory, name);
    return { path, text: readText(path), alias: serviceAlias(serviceOf(name, names), project) };
  });
  return files.filter(({ text }) => mayBeContainer(text));
}

/** The directory belongs to the owner of the checkout, and may be gone. */
function namesIn(directory: string): readonly string[] {
  try {
    return listForeignDirectory(directory, mostFiles);
  } catch {
    return [];
  }
}

function readText(path: string): string {
  try {
    if (!lstatSync(path).isFile()) return "";
    return readForeignFile(path, { mostBytes: longestNameBytes }).toString().trim();
  } catch {
    return "";
  }
}

/** `web` for the file of its second replica, `web.2`. */
function serviceOf(file: string, files: readonly string[]): string {
  const [, service = file] = /^(.+)\.\d+$/.exec(file) ?? [];
  return files.includes(service) ? service : file;
}

/** Not the name of a service, nor that of nobody, which a service without replicas has. */
function mayBeContainer(text: string): boolean {
  return /^[a-zA-Z0-9][\w.-]*$/.test(text) && !/\.(?:internal|invalid)$/.test(text);
}

async function presentNames(engine: Engine, names: readonly string[]): Promise<ReadonlySet<string>> {
  const name = [...new Set(names)].map((one) => `^/${one.replaceAll(".", "\\.")}$`);
  const path = `/containers/json?all=1&${filteredBy({ name })}`;
  const listed = await getJson<readonly { readonly Names: readonly string[] }[]>(engine, path);
  return new Set(listed.flatMap(({ Names }) => Names).map((one) => one.replace(/^\//, "")));
}
