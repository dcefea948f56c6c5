import { connect } from "node:net";
import { parseReplies } from "../harness/raw-http.ts";

const silenceMs = 200;

/**
 * Sends requests, which may be broken, on one connection. Returns the statuses of all answers until the service closes
 * the connection, or until there are enough.
 */
export function statusesFrom(port: number, wires: readonly string[]): Promise<number[]> {
  return new Promise((resolve) => {
    let text = "";
    let replyCount = 0;
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      replyCount = text.split("HTTP/1.1 ").length - 1;
      if (replyCount >= wires.length) socket.end();
    });
    // A single request may be incomplete: then no answer comes.
    if (wires.length === 1) socket.setTimeout(silenceMs, () => socket.end());
    socket.on("error", () => {});
    socket.on("close", () => resolve(parseReplies(text).replies.map(({ status }) => status)));
    socket.write(wires.join(""), "latin1");
  });
}
