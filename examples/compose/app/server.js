import { createServer } from "node:http";
import { hostname } from "node:os";

let isStopping = false;

const server = createServer((request, response) => {
  if (isStopping) response.setHeader("connection", "close");
  if (request.url === "/health") return response.end("ok\n");
  response.end(`Hello from version 1 in container ${hostname()}\n`);
});

server.listen(8080);

// Requests under way are finished; then their connections are closed, and those without a request at once. Node knows no
// idle one where a proxy opened it and never used it: what is left after 5 s is closed, or the container would be killed.
process.on("SIGTERM", () => {
  isStopping = true;
  server.close(() => process.exit(0));
  server.closeIdleConnections();
  setTimeout(() => server.closeAllConnections(), 5_000);
});
