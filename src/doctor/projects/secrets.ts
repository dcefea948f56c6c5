import { readdirSync, readFileSync, type Stats } from "node:fs";
import { join } from "node:path";
import { kindOf, ownUid, statOf } from "../../platform/files.ts";
import { listeningProcess } from "../../platform/listener.ts";
import { type CheckFinding, type Fault, okUnless, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** A user with the groups that are known of it. */
interface User {
  readonly uid: number;
  readonly groups: readonly number[];
}

/** Only the process that deploys may read what its scripts need: the other one is on the internet. */
export async function checkSecrets(context: DoctorContext): Promise<CheckFinding> {
  const { secretsPath } = context;
  if (secretsPath === null || kindOf(secretsPath) === "missing")
    return skip("no script has secrets of its own");
  const files = namesIn(secretsPath);
  if (files === null) {
    const text = `This user (uid ${ownUid()}) may not read ${secretsPath}, so neither can \`hotpush run\` as this user. As root:`;
    return problem(text, `chown -R ${ownUid()} ${quote(secretsPath)} && chmod 700 ${quote(secretsPath)}`);
  }
  const receive = await receiveUser(context);
  const modes = files.flatMap((file) => openToOthers(file));
  const access = receive === null ? [] : readableBy(receive, secretsPath, files);
  const who = receive === null ? "" : `, and not receive (uid ${receive.uid})`;
  return okUnless([...modes, ...access], `only their owner can read ${files.length} files${who}`);
}

function namesIn(directory: string): readonly string[] | null {
  try {
    const names = readdirSync(directory).filter((name) => name.endsWith(".env"));
    return names.map((name) => join(directory, name));
  } catch {
    return null;
  }
}

function openToOthers(file: string): readonly Fault[] {
  const mode = statOf(file)?.mode ?? 0;
  if ((mode & 0o077) === 0) return [];
  const text = `Other users can read ${file}, so its project is not served.`;
  return [problem(text, `chmod 600 ${quote(file)}`)];
}

/** The owner of the socket has made it. Its other groups are known if its process is. */
async function receiveUser({ roles, port }: DoctorContext): Promise<User | null> {
  const answer = await roles();
  const socket = answer && statOf(answer.inboxSocket);
  if (!socket) return null;
  const { uid, gid } = socket;
  const found = listeningProcess(port);
  return { uid, groups: [gid, ...(found?.argv.includes("receive") ? groupsOf(found.pid) : [])] };
}

function groupsOf(pid: number): readonly number[] {
  try {
    const [, line = ""] = /^Groups:(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return line.trim().split(/\s+/).filter(Boolean).map(Number);
  } catch {
    return []; // It has exited.
  }
}

function readableBy(receive: User, directory: string, files: readonly string[]): readonly Fault[] {
  if (receive.uid === 0) {
    const text = "`hotpush receive` runs as root: an attacker who takes it over can do everything.";
    return [warning(text, { change: "give it a user of its own, as in docs/projects.md" })];
  }
  const open = files.filter((file) => can(receive, statOf(directory), 1) && can(receive, statOf(file), 4));
  if (open.length === 0) return [];
  const text = `\`hotpush receive\` (uid ${receive.uid}) can read ${open.join(", ")}. Only \`hotpush run\` may, as another user: as that user or root:`;
  const owner = receive.uid === statOf(directory)?.uid ? `chown -R <user of hotpush run> ` : null;
  if (owner !== null) return [problem(text, { change: `${owner}${quote(directory)}` })];
  return [problem(text, `chmod 700 ${quote(directory)} && chmod 600 ${open.map(quote).join(" ")}`)];
}

/** By the mode alone. @param bit 4 to read, 1 to enter */
function can({ uid, groups }: User, stats: Stats | null, bit: 1 | 4): boolean {
  if (stats === null) return false;
  const shift = stats.uid === uid ? 6 : groups.includes(stats.gid) ? 3 : 0;
  return ((stats.mode >> shift) & bit) !== 0;
}
