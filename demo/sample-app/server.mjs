// A whole web app: it answers with its version. Several instances may listen on one port, so that a new version answers
// before the old one stops.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";

const server = createServer((_request, response) =>
  response.end(`Hello from version ${process.env.VERSION}`),
);
server.listen({ host: "127.0.0.1", port: Number(process.env.APP_PORT), reusePort: true }, () => {
  writeFileSync("app.pid", String(process.pid));
});
process.on("SIGTERM", () => server.close());
