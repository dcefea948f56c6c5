/**
 * Floods of connections, from a process of their own, so that they do not slow down the test's own requests.
 * `node flood.ts hold|upload <options as JSON>` is that process.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { parseReplies } from "./raw-http.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** Connections that send something and then nothing, or almost nothing. A closed one is replaced. */
export interface HeldConnections {
  readonly port: number;
  readonly clients: number;
  /** Each connection sends this text at once, then this many spaces. */
  readonly text: string;
  readonly spaces?: number;
  /** The interval of additional spaces. */
  readonly dripMs?: number;
  /** The least interval between two opened connections: a flood that was held up does not catch up in a burst. */
  readonly openEveryMs?: number;
  /** How long after its end a connection is replaced. */
  readonly reopenMs: number;
}

/** Badly signed bodies of this size, each on a connection of its own, all at once. */
export interface Uploads {
  readonly port: number;
  readonly clients: number;
  readonly bodyBytes: number;
}

/** Starts a flood, and waits until `enough` connections have been opened. @returns how many have been so far */
export async function startFlood(
  scope: Scope,
  options: HeldConnections,
  enough: number,
): Promise<{ readonly opened: () => number }> {
  let opened = 0;
  createInterface(start(scope, "hold", options).stdout).on("line", (line) => {
    opened = Number(line);
  });
  await until("the flood has begun", () => opened >= enough);
  return { opened: () => opened };
}

/** Uploads the bodies. @returns how often each status came back; "cut" if none did */
export async function uploadAtOnce(
  scope: Scope,
  options: Uploads,
): Promise<Readonly<Record<string, number>>> {
  return JSON.parse(await text(start(scope, "upload", options).stdout));
}

/** The head of a push whose signature is wrong. */
export function badlySigned(declaredBytes: number): string {
  return [
    "POST /webhook HTTP/1.1",
    "Host: a",
    "Content-Type: application/json",
    "X-GitHub-Event: push",
    `X-Hub-Signature-256: sha256=${"0".repeat(64)}`,
    `Content-Length: ${declaredBytes}`,
    "",
    "",
  ].join("\r\n");
}

const programs = { hold: holdConnections, upload };

function start(
  scope: Scope,
  program: keyof typeof programs,
  options: object,
): ChildProcessByStdio<null, Readable, null> {
  const args = [import.meta.filename, program, JSON.stringify(options)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  scope.after(() => child.kill("SIGKILL"));
  return child;
}

/** Prints the number of connections opened so far, one line each time. */
function holdConnections({
  port,
  clients,
  text: beginning,
  spaces = 0,
  dripMs,
  openEveryMs = 0.25,
  reopenMs,
}: HeldConnections): void {
  const sent = Buffer.concat([Buffer.from(beginning), Buffer.alloc(spaces, " ")]);
  let opened = 0;
  let toOpen = clients;
  function open(): void {
    opened += 1;
    toOpen -= 1;
    const socket = connect({ port, host: "127.0.0.1" });
    const drip = dripMs === undefined ? undefined : setInterval(() => socket.write(" "), dripMs);
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(drip);
      setTimeout(() => {
        toOpen += 1;
      }, reopenMs);
    });
    socket.resume();
    if (sent.length > 0) socket.write(sent);
  }
  const mostAtOnce = Math.max(1, Math.floor(1 / openEveryMs));
  setInterval(
    () => {
      for (let count = Math.min(toOpen, mostAtOnce); count > 0; count -= 1) open();
    },
    Math.max(1, openEveryMs),
  );
  setInterval(() => console.log(opened), 20);
}

async function upload({ port, clients, bodyBytes }: Uploads): Promise<void> {
  const body = Buffer.alloc(bodyBytes, " ");
  const uploadOne = () =>
    new Promise<string>((resolve) => {
      let received = "";
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("data", (chunk) => {
        received += chunk.toString("latin1");
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(String(parseReplies(received).replies[0]?.status ?? "cut")));
      socket.write(badlySigned(bodyBytes).replace("Host:", "Connection: close\r\nHost:"));
      socket.write(body);
    });
  const counts: Record<string, number> = {};
  for (const outcome of await Promise.all(Array.from({ length: clients }, uploadOne)))
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  console.log(JSON.stringify(counts));
}

if (import.meta.main) {
  const [program, options = ""] = process.argv.slice(2);
  await programs[program as keyof typeof programs](JSON.parse(options));
}
