import { connect } from "node:net";
import process from "node:process";
import { parseReplies } from "./raw-http.ts";

/**
 * A program of its own: `node upload-load.ts <port> <clients> <bytes>` sends a badly signed body of that size on that many
 * connections at once, and prints how often each status came back ("cut" if none did).
 */
const [port = 0, clientCount = 0, bodyBytes = 0] = process.argv.slice(2).map(Number);
const body = Buffer.alloc(bodyBytes, " ");
const head = [
  "POST /webhook HTTP/1.1",
  "Host: hotpush.test",
  "Content-Type: application/json",
  "X-GitHub-Event: push",
  `X-Hub-Signature-256: sha256=${"0".repeat(64)}`,
  `Content-Length: ${bodyBytes}`,
  "Connection: close",
].join("\r\n");

function upload(): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(String(parseReplies(text).replies[0]?.status ?? "cut")));
    socket.write(`${head}\r\n\r\n`);
    socket.write(body);
  });
}

const counts: Record<string, number> = {};
for (const outcome of await Promise.all(Array.from({ length: clientCount }, upload))) {
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}
console.log(JSON.stringify(counts));
