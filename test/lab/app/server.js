// An app whose behaviour is built into its image (behaviour.json), so that each version is an image of its own.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { acceptWebSocket, closeWebSockets } from "./websocket.js";

const { version, behaviour, errs, slowMs = 0 } = JSON.parse(readFileSync("behaviour.json", "utf8"));
const startedMs = Date.now();
let isStopping = false;
let requests = 0;

if (behaviour === "crashes") {
  console.error(`version ${version} cannot start: no database named "shop" (${process.env.DATABASE})`);
  process.exit(3);
}
console.log(`version ${version} starts, ${behaviour}`);

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://app");
  if (pathname === "/health") return health(response);
  if (pathname === "/fail") return answer(response, 500, "failed");
  if (pathname === "/break") return breakOff(response);
  if (pathname === "/reset") {
    console.log("cut off");
    return request.socket.destroy();
  }
  if (pathname === "/stream") return stream(response, Number(searchParams.get("lines")));
  if (behaviour === "broken" && startedMs + 500 < Date.now()) return answer(response, 500, "broken");
  requests += 1;
  // A version may be healthy and still answer each tenth request badly.
  if (errs && requests % errs.every === 0) return answer(response, 500, "an error of this version");
  if (behaviour === "falls") process.exit(4);
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const size = Buffer.concat(chunks).length;
    setTimeout(
      () => answer(response, 200, `${version} ${request.method} ${size}`),
      slowMs + Number(searchParams.get("ms") ?? 0),
    );
  });
});
const unused = new Set();
server.on("connection", (socket) => {
  unused.add(socket);
  socket.on("close", () => unused.delete(socket));
});
server.on("request", (request) => unused.delete(request.socket));
server.on("upgrade", (request, socket) => {
  unused.delete(socket);
  acceptWebSocket(request, socket, version);
});
server.keepAliveTimeout = 75_000;
server.listen(8080);

function health(response) {
  if (behaviour === "sick")
    return answer(
      response,
      500,
      `version ${version} is sick: no disk left in the app (${process.env.DATABASE})`,
    );
  if (isStopping) return answer(response, 503, "stopping");
  if (behaviour === "slow-start" && Date.now() < startedMs + 4_000) return answer(response, 503, "not yet");
  answer(response, 200, "ok");
}

/** A line with the version, five times a second. */
function stream(response, lines) {
  if (lines === 0) return response.end("end\n");
  response.write(`${version}\n`);
  setTimeout(() => stream(response, lines - 1), 200);
}

/** Ends the connection in the middle of the answer. */
function breakOff(response) {
  response.writeHead(200, { "content-length": 100 }).write("the beginning");
  setTimeout(() => response.socket.destroy(), 50);
}

function answer(response, status, text) {
  if (isStopping) response.setHeader("connection", "close"); // Or a busy client would keep it open for ever.
  response.writeHead(status, { "content-type": "text/plain" }).end(text);
}

process.on("SIGTERM", () => {
  if (behaviour === "ignores-sigterm") return;
  if (behaviour === "dies-on-sigterm") process.exit(0);
  isStopping = true;
  closeWebSockets();
  setTimeout(close, behaviour === "lingers" ? 5_000 : 0);
});

/** A proxy may open a connection and not use it; Node does not count that one as idle. */
function close() {
  server.close(() => process.exit(0));
  setInterval(() => server.closeIdleConnections(), 100);
  setTimeout(() => {
    for (const socket of unused) socket.destroy();
  }, 1_000);
}
