import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process as proc(5) shows it. */
export interface ListeningProcess {
  readonly pid: number;
  readonly argv: readonly string[];
  readonly directory: string;
  readonly startedAtMs: number;
}

/** Whether a program on this machine listens on the TCP port `port`, on any address. */
export function isPortTaken(port: number): boolean {
  return socketsAt(port).length > 0;
}

/** The process that listens on `port`; null if it belongs to another user, or is in another container. */
export function listeningProcess(port: number): ListeningProcess | null {
  const sockets = socketsAt(port);
  if (sockets.length === 0) return null;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const descriptors = readdirSync(`/proc/${pid}/fd`);
      if (descriptors.some((fd) => sockets.includes(linkOf(`/proc/${pid}/fd/${fd}`)))) return describe(pid);
    } catch {
      // It has exited, or belongs to another user.
    }
  }
  return null;
}

/** `socket:[<inode>]` of each socket in state 0A (LISTEN) with this local port. */
function socketsAt(port: number): readonly string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) => readTable(table).split("\n"));
  const rows = lines.map((line) => line.trim().split(/\s+/));
  const mine = rows.filter(([, local, , state]) => local?.endsWith(wanted) && state === "0A");
  return mine.map((row) => `socket:[${row[9]}]`);
}

/** "" without IPv6. */
function readTable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
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
