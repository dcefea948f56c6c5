import { chmodSync, lchownSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "#log";
import { ownUid, statOf } from "#platform/files";
import { type Argv, runCommand } from "#platform/run-command";
import type { ProjectScript } from "./known-secrets.ts";

type OwnState = Pick<ProjectScript, "statePath" | "user">;

/**
 * Makes the directory in which the scripts of a project keep their state, if they have one, for their user alone: for the
 * lock and the good versions of its roll-outs. If the checkout has changed hands, so does everything in it.
 *
 * @throws Error with a `code` if the system refuses
 */
export async function makeScriptState({ statePath: path, user }: OwnState): Promise<void> {
  if (path === null) return;
  const owner = { uid: user?.uid ?? ownUid(), gid: user?.gid ?? process.getgid?.() ?? 0 };
  makeParent(dirname(path));
  const isNew = mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined;
  if (isNew) return lchownSync(path, owner.uid, owner.gid);
  const { uid } = statSync(path);
  if (uid !== owner.uid) await giveTo(path, uid, owner);
}

/** The same before the first deployment, so that a roll-out by hand finds it. An error is logged. */
export async function prepareScriptState(state: OwnState, log: Log): Promise<void> {
  try {
    await makeScriptState(state);
  } catch (error) {
    log.error({ event: "script.no_state", err: error }, "The state directory of the scripts cannot be made");
  }
}

/** The users of other projects pass through it, each to a directory of their own. */
function makeParent(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o711 });
  const mode = statOf(path)?.mode ?? 0;
  if ((mode & 0o001) === 0) chmodSync(path, mode | 0o011);
}

/** The former owner may still change what is in there: chown(1) follows no link, and takes only what was theirs. */
async function giveTo(path: string, from: number, { uid, gid }: { uid: number; gid: number }): Promise<void> {
  const argv: Argv = ["chown", "-R", "-P", `--from=${from}`, `${uid}:${gid}`, path];
  const ending = await runCommand({ argv, timeoutMs: 30_000 });
  if (ending.kind === "exited" && ending.code === 0) return;
  const reason = ending.lastLines.at(-1) ?? ending.kind;
  throw Object.assign(new Error(`${path} could not be given to uid ${uid}: ${reason}`), { code: "chown" });
}
