import { createServer } from "node:http";
import { hostname } from "node:os";

let isStopping = false;

const server = createServer((request, response) => {
  if (isStopping) response.setHeader("connection", "close");
  if (request.url === "/health") return response.end("ok\n");
  response.end(`Hello from version 1 in container ${hostname()}\n`);
});

// Connections without a request yet: a proxy opens some that it may never use, and Node does not take them for idle ones.
const unused = new Set();
server.on("connection", (socket) => {
  unused.add(socket);
  socket.once("close", () => unused.delete(socket));
});
server.on("request", ({ socket }) => unused.delete(socket));

server.listen(8080);

// Requests under way are finished; then their connections are closed, and the idle ones at once.
process.on("SIGTERM", () => {
  isStopping = true;
  server.close(() => process.exit(0));
  server.closeIdleConnections();
  setTimeout(() => {
    for (const socket of unused) socket.destroy();
  }, 2_000);
});
