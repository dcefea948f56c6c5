import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { proxyAdvice } from "../../src/init/proxy-config.ts";
import { recordedDeliveryCount } from "../harness/database.ts";
import { type Delivery, deliver, githubPush } from "../harness/delivery.ts";
import { freePort } from "../harness/free-port.ts";
import { type NameServer, startNameServer } from "../harness/name-server.ts";
import { needs } from "../harness/requirements.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** Hotpush behind a real nginx, whose server block is what `hotpush init` prints. */
interface Hosted {
  readonly url: string;
  readonly names: NameServer;
  readonly service: RunningService;
}

/** Two addresses stand for the containers that Docker's name server would lead to. */
const [first, second] = ["127.0.0.2", "127.0.0.3"];
const replacements = 2;
const clients = 10;
const largestBody = 25 * 1024 ** 2;

test(`nginx: ${replacements} replacements of Hotpush under load lose no push`, needs("nginx"), async (t) => {
  const { url, names, service } = await startHosted(t);
  const load = startClients(url);
  let [current, address] = [service, first];
  for (let round = 1; round <= replacements; round += 1) {
    const next = address === first ? second : first;
    const fresh = await current.again({ env: envOf(next, service.port) });
    await names.lead(address, next);
    await load.turn();
    // In turns it stops in order, and dies in the midst of its requests.
    await current.end(round % 2 === 0 ? "SIGTERM" : "SIGKILL");
    await load.turn();
    await names.lead(next);
    [current, address] = [fresh, next];
  }
  const { sent, failures } = await load.stop();
  t.diagnostic(`${sent} pushes`);
  assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${sent} requests failed`);
  assert.equal(recordedDeliveryCount(service.statePath), sent);
});

test("nginx: a push of the largest size gets through, a larger one is refused", needs("nginx"), async (t) => {
  const { url } = await startHosted(t);
  assert.equal((await deliver(url, pushOf(largestBody))).status, 202);
  const { headers, body } = pushOf(largestBody + 1);
  const refused = await fetch(`${url}/webhook`, { method: "POST", headers, body: body as string });
  assert.equal(refused.status, 413);
});

test("nginx: slow bodies delay no other push, and are accepted when complete", needs("nginx"), async (t) => {
  const { url, service } = await startHosted(t);
  const slow = Array.from({ length: 50 }, () => startSlowly(url, githubPush()));
  const quick = await Promise.all(Array.from({ length: 50 }, () => deliver(url, githubPush())));
  assert.deepEqual(new Set(quick.map(({ status }) => status)), new Set([202]));
  assert.deepEqual(new Set(await Promise.all(slow.map((finish) => finish()))), new Set(["202"]));
  assert.equal(recordedDeliveryCount(service.statePath), 100);
});

test("nginx: the log has the client's address, whatever the client claims", needs("nginx"), async (t) => {
  const { url, service } = await startHosted(t);
  const forged = githubPush({}, "another secret that was never configured anywhere");
  const headers = { ...forged.headers, "x-forwarded-for": "203.0.113.5" };
  const sent = request(`${url}/webhook`, { method: "POST", headers, localAddress: "127.0.0.9" }).end(
    forged.body,
  );
  sent.on("response", (response) => response.resume());
  const { from } = await service.log.waitFor(({ event }) => event === "delivery.refused");
  assert.equal(from, "127.0.0.9");
});

async function startHosted(scope: Scope): Promise<Hosted> {
  const service = await startService(scope, { env: envOf(first, await freePort()) });
  const names = await startNameServer(scope);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await names.lead(first);
  startNginx(scope, `listen 127.0.0.1:${port};\n${printedLines(names.port, service.port)}`);
  await until("nginx answers", () => fetch(url).catch(() => null));
  return { url, names, service };
}

/** On the machine of a test every proxy is loopback. */
function envOf(address: string, port: number): Readonly<Record<string, string>> {
  return { WEBHOOK_HOST: address, WEBHOOK_PORT: String(port), TRUSTED_PROXIES: "127.0.0.1" };
}

/** What init prints, but for the two ports that are Docker's own and the container's. */
function printedLines(namesPort: number, servicePort: number): string {
  const lines = proxyAdvice({ kind: "other-proxy", service: "edge", services: ["web"], networks: [] });
  const block = /^ *location = \/webhook \{\n[^}]*\}$/m.exec(lines.join("\n"))?.[0] ?? "";
  assert.match(block, /127\.0\.0\.11 [\s\S]*hotpush:9000/);
  return block
    .replace("127.0.0.11 ", `127.0.0.1:${namesPort} `)
    .replace("hotpush:9000", `hotpush:${servicePort}`);
}

function startNginx(scope: Scope, server: string): void {
  const directory = temporaryDirectory(scope);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  const http = ["access_log off;", ...temporary, `server {\n${server}\n}`].join("\n");
  const path = join(directory, "nginx.conf");
  writeFileSync(
    path,
    `daemon off;\nmaster_process off;\npid ${directory}/pid;\nevents {}\nhttp {\n${http}\n}\n`,
  );
  const child = spawn("nginx", ["-c", path, "-p", directory, "-e", join(directory, "error.log")], {
    stdio: "inherit",
  });
  scope.after(() => child.kill("SIGKILL"));
}

/** Clients that push as fast as they are answered. */
function startClients(url: string) {
  const answers = Array.from({ length: clients }, () => 0);
  const failures: string[] = [];
  let isStopped = false;
  const running = answers.map(async (_, client) => {
    while (!isStopped) {
      const outcome = await deliver(url, githubPush()).then(({ status }) => status, String);
      // 200 is a push that the other instance recorded before it stopped.
      if (outcome !== 202 && outcome !== 200) failures.push(String(outcome));
      answers[client] = (answers[client] ?? 0) + 1;
    }
  });
  return {
    /** Resolves once no push is under way that was sent before the call. */
    async turn() {
      const before = [...answers];
      const hasTurned = () => answers.every((count, client) => count >= (before[client] ?? 0) + 2);
      await until("each client has two more answers", hasTurned);
    },
    async stop() {
      isStopped = true;
      await Promise.all(running);
      return { sent: answers.reduce((sum, count) => sum + count, 0), failures };
    },
  };
}

/** A push whose body has this many bytes. */
function pushOf(bytes: number): Delivery {
  const bare = { after: "a".repeat(40), mark: "", commits: [""] };
  const filling = bytes - Buffer.byteLength(githubPush(bare).body);
  return githubPush({ ...bare, commits: ["x".repeat(filling)] });
}

/** Sends a push but for its last byte. @returns what sends that, and gives the status of the answer */
function startSlowly(url: string, { headers, body }: Delivery): () => Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const head = { ...headers, host: "hotpush.test", connection: "close", "content-length": body.length };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /webhook HTTP/1.1\r\n${lines.join("")}\r\n${body.slice(0, -1)}`);
  return async () => {
    socket.write(body.slice(-1));
    return (await text(socket)).split(" ")[1] ?? "";
  };
}
