import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { caddyMount, type MachineFiles, machineServices, serverCommands } from "../config/machine-part.ts";
import { type LoadOptions, type LoadResult, loadCaddyfile } from "./load-caddyfile.ts";
import type { CaddyContainer } from "./project-networks.ts";

export interface CaddyFilesOptions extends LoadOptions {
  readonly files: MachineFiles;
}

/** Caddy starts and reads its files within so many looks. */
const patienceLooks = 5;

/**
 * Makes the look at Caddy's files: it loads them into Caddy if they changed. A change counts once two looks in a row agree,
 * because a file that somebody is writing is read half.
 *
 * @returns a function that returns what is wrong with Caddy's configuration, or null; it throws the system's error if a file
 * cannot be read
 */
export function followCaddyFiles(
  options: CaddyFilesOptions,
): (caddies: readonly CaddyContainer[]) => Promise<string | null> {
  const { files } = options;
  let [seen, loaded] = ["", ""];
  let unanswered = 0;
  let fault: string | null = null;

  return async (caddies) => {
    if (caddies.length === 0) return absent(files);
    const before = seen;
    // A new container has read the files itself. Loading them again changes nothing, but brings its answer.
    seen = [...caddies.map(({ id }) => id), ...listCaddyFiles(files).map(stamp)].join("\n");
    if (seen !== before || seen === loaded) return fault;
    const result = await loadCaddyfile(readFileSync(files.caddyfile, "utf8"), options);
    if (result.kind !== "no answer") loaded = seen;
    unanswered = result.kind === "no answer" ? unanswered + 1 : 0;
    if (unanswered === 0 || unanswered > patienceLooks) fault = faultOf(result, files);
    return fault;
  };
}

function listCaddyFiles(files: MachineFiles): readonly string[] {
  return [files.caddyfile, ...listSites(files).map((name) => sitePath(files, name))];
}

/** The names of the projects that have a site, or had one before they were removed. */
export function listSites({ sitesPath }: MachineFiles): readonly string[] {
  const names = readdirSync(sitesPath).filter((name) => name.endsWith(".caddy") && !name.startsWith("."));
  return names.sort().map((name) => name.slice(0, -".caddy".length));
}

/** The file with the site of a project. */
export function sitePath({ sitesPath }: MachineFiles, project: string): string {
  return join(sitesPath, `${project}.caddy`);
}

function stamp(path: string): string {
  const { ino, size, mtimeMs } = statSync(path);
  return [path, ino, size, mtimeMs].join(" ");
}

function absent(files: MachineFiles): string {
  return `Caddy does not run, so no project is served. Run: ${serverCommands(files).start}`;
}

function faultOf(result: LoadResult, files: MachineFiles): string | null {
  if (result.kind === "loaded") return null;
  if (result.kind === "no answer")
    return `Caddy does not answer. Its log says why. See: ${serverCommands(files).logsOf(machineServices.caddy)}`;
  const reason = result.reason.replaceAll(caddyMount, files.path);
  return `Caddy rejects its configuration and keeps the old one, but only until it restarts. Correct the Caddyfile or the site: ${reason}`;
}
