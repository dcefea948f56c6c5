import { createServer } from "node:http";
import { hostname } from "node:os";

let isStopping = false;

const server = createServer((request, response) => {
  if (isStopping) response.setHeader("connection", "close");
  if (request.url === "/health") return response.end("ok\n");
  response.end(`Hello from version 1 in container ${hostname()}\n`);
});

// Connections without a request yet: a proxy opens some in advance, and Node does not count them as idle.
const unused = new Set();
server.on("connection", (socket) => {
  unused.add(socket);
  socket.once("close", () => unused.delete(socket));
});
server.on("request", ({ socket }) => unused.delete(socket));

server.listen(8080);

// Finishes requests in flight, then closes their connections; idle ones are closed at once.
process.on("SIGTERM", () => {
  isStopping = true;
  server.close(() => process.exit(0));
  server.closeIdleConnections();
  setTimeout(() => {
    for (const socket of unused) socket.destroy();
  }, 2_000);
});
