import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { request } from "node:https";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, before, test } from "node:test";
import { freePort } from "../harness/listen.ts";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { untilPrinted } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("streams through TLS during a roll-out on a real engine", (env) => {
  let project: RolledProject;
  let origin: string;

  before(async () => {
    const port = await freePort();
    origin = `https://127.0.0.1:${port}`;
    project = await makeRolledProject(env, async ({ directory }) => {
      const services = {
        app: { labels: { "hotpush.drain-timeout": "6s" } },
        caddy: { ports: [`127.0.0.1:${port}:443`] },
      };
      await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services }));
      await withTls(join(directory, "Caddyfile"));
    });
  });
  after(() => project?.remove());

  test("HTTP/2 streams and WebSockets end as the app ends them; the connection continues with the new version", async () => {
    const session = connect(origin, { rejectUnauthorized: false, servername: "localhost" });
    const socket = await openWebSocket(origin);
    assert.equal(await socket.ask("who"), "first");
    const stream = read(session, "/stream?lines=20");
    await project.underLoad(async () => {
      await project.write("second", "graceful");
      const { code, output } = await untilPrinted(project.spawnRollout(), /app +switch /, async () => {
        assert.equal(await socket.ask("who"), "first", "the open WebSocket stays with the old version");
        const fresh = await openWebSocket(origin);
        assert.equal(await fresh.ask("who"), "second");
      });
      assert.equal(code, 0, output);
      assert.match(output, /1 requests were still under way at the limit/, "the WebSocket");
    });
    assert.equal(await stream, `${"first\n".repeat(20)}end\n`);
    await until("the end of the WebSocket", () => socket.ending());
    assert.equal(socket.ending(), 1001, "the app says itself that it goes");
    assert.match(await read(session, "/"), /^second /, "on the same connection");
    session.close();
  });
});

async function withTls(path: string): Promise<void> {
  const text = await readFile(path, "utf8");
  const [options = "", site = ""] = text.split(/^(?=:80)/m);
  const global = options.replace("{\n", "{\n\tskip_install_trust\n\tauto_https disable_redirects\n");
  const secure = site.replace(":80 {", "localhost {\n\ttls internal");
  await writeFile(path, `${global}${site}\n${secure}`);
}

async function read(session: ClientHttp2Session, path: string): Promise<string> {
  const stream = session.request({ ":path": path, ":authority": "localhost" });
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 200);
  return (await stream.setEncoding("utf8").toArray()).join("");
}

/** A WebSocket through a proxy with an untrusted certificate. */
interface WebSocketClient {
  /** Sends a text. @returns the answer */
  readonly ask: (text: string) => Promise<string>;
  /** The status of the close frame, or cut off; null while it is open. */
  readonly ending: () => number | "cut" | null;
}

/** Opens one at `origin`; texts are shorter than 126 bytes. */
async function openWebSocket(origin: string): Promise<WebSocketClient> {
  const headers = {
    host: "localhost",
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": randomBytes(16).toString("base64"),
  };
  const sent = request(`${origin}/socket`, { headers, rejectUnauthorized: false, servername: "localhost" });
  sent.end();
  sent.on("response", ({ statusCode }) => sent.destroy(new Error(`status ${statusCode}, no WebSocket`)));
  const [, socket]: [IncomingMessage, Duplex] = (await once(sent, "upgrade")) as never;
  const texts: string[] = [];
  let ending: number | "cut" | null = null;
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (let length = received[1] ?? 0; received.length >= 2 + length; length = received[1] ?? 0) {
      const opcode = (received[0] ?? 0) & 15;
      const payload = received.subarray(2, 2 + length);
      received = received.subarray(2 + length);
      if (opcode === 8) ending = payload.readUInt16BE();
      else texts.push(payload.toString());
      if (received.length < 2) break;
    }
  });
  const ended = () => {
    ending ??= "cut";
  };
  socket.on("close", ended).on("end", ended).on("error", ended);
  return {
    ending: () => ending,
    async ask(text) {
      const count = texts.length;
      // A client must mask its frames; a mask of zeros changes nothing.
      socket.write(
        Buffer.concat([Buffer.from([0x81, 0x80 | Buffer.byteLength(text), 0, 0, 0, 0]), Buffer.from(text)]),
      );
      return until("an answer", () => texts[count]);
    },
  };
}
