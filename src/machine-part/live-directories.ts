import { chmodSync, lchownSync, lstatSync, mkdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { serviceAlias } from "../config/machine-part.ts";
import { ownUid, statOf } from "../platform/files.ts";
import { replaceForeignFile } from "../platform/foreign-files.ts";
import type { Access } from "../platform/replace-file.ts";
import { requestsDirectory } from "../rollout/requests/caddy-lines.ts";

/** Caddy may run as any user. The directory around it is closed to all others. */
const directoryMode = 0o755;

/**
 * Makes the directory of Caddy's logs of requests. Roll-outs read them as the owners of the checkouts, but if Caddy was first,
 * it has closed the directory to them.
 *
 * @throws the system's error
 */
export function openRequestsDirectory(livePath: string): void {
  const directory = join(livePath, requestsDirectory);
  if (!isThere(directory)) mkdirSync(directory);
  if ((lstatSync(directory).mode & 0o777) !== directoryMode) chmodSync(directory, directoryMode);
}

/**
 * Makes the live directory of a project, which belongs to the owner of its checkout, and the live files that its site reads.
 * A new one has the service's name on the project's network in it, so that Caddy finds the service before its first roll-out.
 * Files that are there stay as they are. Without a checkout, nothing is made.
 *
 * @param site the text of its site, or ""
 * @throws the system's error
 */
export function seedLiveDirectory(
  livePath: string,
  { name, repoPath }: { readonly name: string; readonly repoPath: string },
  site: string,
): void {
  const directory = join(livePath, name);
  const checkout = statOf(repoPath);
  if (checkout === null) return;
  makeDirectory(directory, checkout);
  const missing = servicesIn(site, name).filter((service) => !isThere(join(directory, service)));
  for (const service of missing)
    replaceForeignFile(join(directory, service), serviceAlias(service, name), accessFor(checkout));
}

/** The directory belongs to somebody else, so a link in it is not followed. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** If the checkout has changed hands, so does the directory. A roll-out can replace any file in it. */
function makeDirectory(path: string, { uid, gid }: Stats): void {
  if (!isThere(path)) mkdirSync(path, { mode: directoryMode });
  if (ownUid() === 0 && lstatSync(path).uid !== uid) lchownSync(path, uid, gid);
}

/** The services in lines such as `import service shop web 8080`. */
function servicesIn(site: string, project: string): readonly string[] {
  const imports = [...site.matchAll(/^[ \t]*import\s+service\s+(\S+)\s+(\w[\w.-]*)\s/gm)];
  return imports.flatMap(([, of, service = ""]) => (of === project ? [service] : []));
}

function accessFor({ uid, gid }: Stats): Access {
  return { mode: 0o644, owner: ownUid() === 0 ? { uid, gid } : null };
}
