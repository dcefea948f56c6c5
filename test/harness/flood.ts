/**
 * Floods of connections, from a process of their own, so that they do not slow down the test's own requests.
 * `node flood.ts hold|upload <options as JSON>` is that process.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { parseReplies } from "./raw-http.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** Connections that send something and then nothing, or almost nothing. A closed one is replaced after a while. */
interface HeldConnections {
  readonly port: number;
  readonly clients: number;
  /** What each connection sends at once. */
  readonly text: string;
  /** The interval of additional spaces. */
  readonly dripMs?: number;
  /** The least interval between two opened connections: a flood that was held up does not catch up in a burst. */
  readonly openEveryMs?: number;
}

/** Badly signed bodies of this size, each on a connection of its own, all at once. */
interface Uploads {
  readonly port: number;
  readonly clients: number;
  readonly bodyBytes: number;
}

const reopenMs = 5_000;

/** Starts a flood, and waits until all of its connections have been opened. @returns how many have been so far */
export async function startFlood(scope: Scope, options: HeldConnections): Promise<() => number> {
  let opened = 0;
  start(scope, "hold", options).on("message", (count: number) => {
    opened = count;
  });
  await until("the flood has begun", () => opened >= options.clients);
  return () => opened;
}

/** Uploads the bodies. @returns how often each status came back; "cut" if none did */
export async function uploadAtOnce(
  scope: Scope,
  options: Uploads,
): Promise<Readonly<Record<string, number>>> {
  const [counts] = await once(start(scope, "upload", options), "message");
  return counts;
}

function start(scope: Scope, program: keyof typeof programs, options: object) {
  const child = fork(import.meta.filename, [program, JSON.stringify(options)]);
  scope.after(() => child.kill("SIGKILL"));
  return child;
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

const programs = { hold, upload };

/** Says again and again how many connections have been opened so far. */
function hold({ port, clients, text, dripMs, openEveryMs = 0.25 }: HeldConnections): void {
  let opened = 0;
  let toOpen = clients;
  function open(): void {
    opened += 1;
    toOpen -= 1;
    const socket = connect({ port, host: "127.0.0.1" });
    const drip = dripMs === undefined ? undefined : setInterval(() => socket.write(" "), dripMs);
    socket.on("error", () => {}).resume();
    socket.on("close", () => {
      clearInterval(drip);
      setTimeout(() => {
        toOpen += 1;
      }, reopenMs);
    });
    socket.write(text);
  }
  const openSome = () => {
    for (let count = Math.min(toOpen, Math.max(1, 1 / openEveryMs)); count > 0; count -= 1) open();
  };
  setInterval(openSome, Math.max(1, openEveryMs));
  setInterval(() => process.send?.(opened), 20);
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
  const outcomes = await Promise.all(Array.from({ length: clients }, uploadOne));
  const counts = Map.groupBy(outcomes, (outcome) => outcome);
  process.send?.(Object.fromEntries([...counts].map(([outcome, { length }]) => [outcome, length])));
}

if (import.meta.main) {
  const [program, options = ""] = process.argv.slice(2);
  await programs[program as keyof typeof programs](JSON.parse(options));
}
