import { connect } from "node:net";
import { parseReplies } from "../harness/raw-http.ts";

const silenceMs = 200;

/**
 * Sends requests that may be broken on one connection. Gives the statuses of all answers, until the service or, when
 * there are enough, this side closes.
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
    // What is alone on its connection may be the beginning of something that never comes.
    if (wires.length === 1) socket.setTimeout(silenceMs, () => socket.end());
    socket.on("error", () => {});
    socket.on("close", () => resolve(parseReplies(text).replies.map(({ status }) => status)));
    socket.write(wires.join(""), "latin1");
  });
}
