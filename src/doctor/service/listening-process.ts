import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process as proc(5) shows it. */
export interface ListeningProcess {
  readonly pid: number;
  readonly argv: readonly string[];
  readonly directory: string;
  readonly startedAtMs: number;
}

/** The process that listens on `port`, by proc(5); null where it is another user's, or in another container. */
export function listeningProcess(port: number): ListeningProcess | null {
  const sockets = new Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) => listening(table, port)));
  if (sockets.size === 0) return null;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const descriptors = readdirSync(`/proc/${pid}/fd`);
      if (descriptors.some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)))) return describe(pid);
    } catch {
      // It has ended, or is another user's.
    }
  }
  return null;
}

/** `socket:[<inode>]` of each socket in state 0A (LISTEN) with this local port. */
function listening(table: string, port: number): readonly string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync(table, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
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
  // Fields after the program's name, which may hold spaces; the 22nd is the start, in hundredths of a second after boot.
  const startTicks = Number(
    stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .at(19),
  );
  const bootedAtMs = Number(/^btime (\d+)/m.exec(readFileSync("/proc/stat", "utf8"))?.[1]) * 1_000;
  return {
    pid: Number(pid),
    argv: readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean),
    directory: readlinkSync(`/proc/${pid}/cwd`),
    startedAtMs: bootedAtMs + startTicks * 10,
  };
}
