// Follows Docker's health as Traefik does: the healthy containers of SERVICE get the requests in turn. If a connection
// fails, the next one is tried, as by Traefik's middleware `retry`. With KEEPS, containers stay in use while they run, as
// in nginx with a name that it has resolved.
import { createServer, request } from "node:http";

const { SERVICE, PROJECT, KEEPS } = process.env;
const label = [`com.docker.compose.project=${PROJECT}`, `com.docker.compose.service=${SERVICE}`];
const filters = encodeURIComponent(JSON.stringify({ label, health: ["healthy"], status: ["running"] }));
const longestTryMs = 10_000;
let addresses = [];

function look() {
  const options = { socketPath: "/var/run/docker.sock", path: `/containers/json?filters=${filters}` };
  request(options, async (answer) => {
    const containers = JSON.parse(Buffer.concat(await answer.toArray()));
    const healthy = containers.flatMap(({ NetworkSettings }) =>
      Object.values(NetworkSettings.Networks).map(({ IPAddress }) => IPAddress),
    );
    const kept = KEEPS ? addresses.filter((address) => healthy.includes(address)) : [];
    addresses = kept.length > 0 ? kept : healthy;
    setTimeout(look, 250);
  })
    .on("error", () => setTimeout(look, 250))
    .end();
}
look();

let turn = 0;
createServer(async (incoming, outgoing) => {
  const body = Buffer.concat(await incoming.toArray());
  const deadlineMs = Date.now() + longestTryMs;
  attempt();

  function attempt() {
    turn += 1;
    const host = addresses[turn % addresses.length];
    const { method, url: path, headers } = incoming;
    const options = {
      host,
      port: 8080,
      method,
      path,
      headers: { ...headers, connection: "close" },
      agent: false,
    };
    const sent = request(options, (answer) => {
      outgoing.writeHead(answer.statusCode, { "content-type": "text/plain" });
      answer.pipe(outgoing);
    });
    let isConnected = false;
    sent.on("socket", (socket) => {
      const late = setTimeout(() => socket.destroy(new Error("no connection in time")), 500);
      socket.once("connect", () => {
        clearTimeout(late);
        isConnected = true;
      });
    });
    sent.on("error", ({ message }) => {
      if (!isConnected && Date.now() < deadlineMs) return setTimeout(attempt, 20);
      if (!outgoing.headersSent) outgoing.writeHead(502);
      outgoing.end(message);
    });
    sent.end(body);
  }
}).listen(80);
