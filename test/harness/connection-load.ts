import { connect } from "node:net";
import process from "node:process";

/**
 * A program of its own: `node connection-load.ts <port> <clients> <text>` keeps that many connections open, each of which
 * sends `text` and then nothing. One that is closed is replaced. Prints the number opened so far, a line each time.
 */
const [port = "0", clientCount = "0", text = ""] = process.argv.slice(2);
const reopenMs = 50;
const printMs = 20;
let opened = 0;

function open(): void {
  opened += 1;
  const socket = connect({ port: Number(port), host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(open, reopenMs));
  socket.resume();
  if (text !== "") socket.write(text);
}

for (let index = 0; index < Number(clientCount); index += 1) open();
setInterval(() => console.log(opened), printMs);
