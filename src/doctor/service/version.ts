import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readVersion } from "../../version.ts";
import { type Check, ok, skip, warning } from "../check.ts";
import { readUnit } from "./own-service.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const code = fileURLToPath(new URL("../..", import.meta.url));
const ownMain = join(code, `main${extname(import.meta.filename)}`);

/** The start of a process is known to about a second. */
const slackMs = 2_000;

/** An update of the files does not change a process that runs. */
export const versionCheck: Check = {
  id: "version",
  group: "Service",
  subject: "the running version is the installed one",
  async probe(context) {
    if ((await context.service()).kind !== "hotpush") return skip("the service does not run");
    const running = listeningProcess(context.port);
    if (running === null) {
      return skip("the service is in a container or of another user: run this there, as that user");
    }
    const main = running.argv.map((word) => resolve(running.directory, word)).find(isMain);
    // Docker's proxy for a published port, for example: killing that would not help.
    if (main === undefined) return skip("the service is in a container: run this there");
    if (main !== ownMain) return warning(`The service runs from ${main}, but this is ${root}.`);
    if (newestChangeMs(code) <= running.startedAtMs + slackMs) {
      return ok(`process ${running.pid} runs ${readVersion()}`);
    }
    const hasUnit = (await readUnit(context)).kind === "unit";
    const command = hasUnit ? "systemctl restart hotpush" : `kill ${running.pid}`;
    const again = hasUnit ? "" : " Then start it as you started it before.";
    const text = `The files in ${root} were changed after the service (process ${running.pid}) was started: it runs the earlier version.${again}`;
    return warning(text, { command });
  },
};

function isMain(path: string): boolean {
  return /\/main\.[jt]s$/.test(path);
}

function newestChangeMs(directory: string): number {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Math.max(...files.map(({ parentPath, name }) => statSync(join(parentPath, name)).ctimeMs));
}

/** A process as proc(5) shows it. */
interface ListeningProcess {
  readonly pid: number;
  readonly argv: readonly string[];
  readonly directory: string;
  readonly startedAtMs: number;
}

/** The process that listens on `port`; null if it belongs to another user, or is in another container. */
function listeningProcess(port: number): ListeningProcess | null {
  const sockets = new Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) => listening(table, port)));
  if (sockets.size === 0) return null;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const descriptors = readdirSync(`/proc/${pid}/fd`);
      if (descriptors.some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)))) return describe(pid);
    } catch {
      // It has exited, or belongs to another user.
    }
  }
  return null;
}

/** `socket:[<inode>]` of each socket in state 0A (LISTEN) with this local port. */
function listening(table: string, port: number): readonly string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync(table, "utf8").split("\n");
  const rows = lines.map((line) => line.trim().split(/\s+/));
  const mine = rows.filter(([, local, , state]) => local?.endsWith(wanted) && state === "0A");
  return mine.map((row) => `socket:[${row[9]}]`);
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function describe(pid: string): ListeningProcess {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The program's name may hold spaces. After it, the 20th field is the start, in hundredths of a second after boot.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const bootedAtMs = Number(/^btime (\d+)/m.exec(readFileSync("/proc/stat", "utf8"))?.[1]) * 1_000;
  return {
    pid: Number(pid),
    argv: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean),
    directory: readlinkSync(`/proc/${pid}/cwd`),
    startedAtMs: bootedAtMs + Number(fields.at(19)) * 10,
  };
}
