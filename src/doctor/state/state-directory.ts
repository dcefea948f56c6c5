import { closeSync, constants, fsyncSync, mkdirSync, openSync, unlinkSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { isAllowed, kindOf, ownUid } from "../../platform/files.ts";
import { type Check, judge, ok, problem, type Result, skipped, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { stateIsElsewhere } from "../service/in-compose.ts";
import { statOf } from "../stat.ts";

/** What was accepted is on disk here before the git host is told so. */
export const stateDirectoryCheck: Check = {
  id: "state-directory",
  group: "Disk",
  subject: "the service can write its state",
  async look(scene) {
    const elsewhere = await stateIsElsewhere(scene);
    if (elsewhere !== null) return skipped(elsewhere);
    return lookAt(scene.statePath);
  },
};

function lookAt(statePath: string): Result {
  const user = `uid ${ownUid()}`;
  if (kindOf(statePath) === "missing") {
    if (isAllowed(nearestParent(statePath), constants.W_OK)) return ok(`${statePath} will be made`);
    const text = `${statePath} does not exist, and this user (${user}) cannot make it. As root:`;
    return judge([problem(text, { command: makeCommand(statePath) })], "");
  }
  if (kindOf(statePath) !== "directory") {
    const text = `${statePath} is not a directory that this user (${user}) can enter. As root:`;
    const aside = `mv ${quote(statePath)} ${quote(`${statePath}.aside`)} && ${makeCommand(statePath)}`;
    const isThere = kindOf(statePath) !== "inaccessible";
    return judge([problem(text, { command: isThere ? aside : chownCommand(statePath) })], "");
  }
  const code = tryToWrite(statePath);
  if (code !== null) {
    const text = `This user (${user}) cannot write to ${statePath} (${code}). ${code === "EROFS" ? "The disk is mounted read-only." : "As root:"}`;
    return judge([problem(text, { command: writableCommand(statePath, code) })], "");
  }
  const isOpen = ((statOf(statePath)?.mode ?? 0) & 0o077) !== 0;
  const text = `Other users can look into ${statePath}, where the output of deployments is.`;
  return judge(
    isOpen ? [warning(text, { command: `chmod 700 ${quote(statePath)}` })] : [],
    `${statePath} can be written`,
  );
}

function nearestParent(path: string): string {
  const parent = dirname(path);
  return kindOf(parent) === "missing" && parent !== path ? nearestParent(parent) : parent;
}

/** @returns null where a file could be written and synced, else the error's code */
function tryToWrite(directory: string): string | null {
  const path = join(directory, `.doctor-${process.pid}`);
  try {
    mkdirSync(directory, { recursive: true });
    const fd = openSync(path, "w", 0o600);
    try {
      writeSync(fd, "hotpush doctor\n");
      fsyncSync(fd);
    } finally {
      closeSync(fd);
      unlinkSync(path);
    }
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown error";
  }
}

function makeCommand(path: string): string {
  return `install -d -o ${ownUid()} -g ${process.getgid?.()} -m 700 ${quote(path)}`;
}

function chownCommand(path: string): string {
  return `chown -R ${ownUid()}:${process.getgid?.()} ${quote(path)} && chmod 700 ${quote(path)}`;
}

function writableCommand(path: string, code: string): string {
  if (code !== "EROFS") return chownCommand(path);
  return `mount -o remount,rw "$(findmnt --noheadings --output TARGET --target ${quote(path)})"`;
}
