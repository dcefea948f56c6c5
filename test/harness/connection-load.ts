import { connect } from "node:net";
import process from "node:process";

/**
 * A program of its own: `node connection-load.ts <options as JSON>` keeps connections open that send something and then
 * nothing, or almost nothing. A closed one is replaced. Prints the number opened so far, one line each time.
 */
export interface ConnectionLoad {
  readonly port: number;
  readonly clients: number;
  /** Each connection sends this text at once, then this many spaces. */
  readonly text: string;
  readonly spaces?: number;
  /** The interval of additional spaces. */
  readonly dripMs?: number;
  /** The interval between two opened connections. */
  readonly openEveryMs?: number;
  readonly reopenMs: number;
}

const options = JSON.parse(process.argv[2] ?? "") as ConnectionLoad;
const { port, clients, text, spaces = 0, dripMs, openEveryMs = 0.25, reopenMs } = options;
const sent = Buffer.concat([Buffer.from(text), Buffer.alloc(spaces, " ")]);
const printMs = 20;
let opened = 0;

function open(): void {
  opened += 1;
  const socket = connect({ port, host: "127.0.0.1" });
  const drip = dripMs === undefined ? undefined : setInterval(() => socket.write(" "), dripMs);
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(drip);
    setTimeout(open, reopenMs);
  });
  socket.resume();
  if (sent.length > 0) socket.write(sent);
}

for (let index = 0; index < clients; index += 1) setTimeout(open, index * openEveryMs);
setInterval(() => console.log(opened), printMs);
