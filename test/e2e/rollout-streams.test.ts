import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { type ClientHttp2Session, connect } from "node:http2";
import { join } from "node:path";
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

/** Opens a WebSocket. The certificate of the proxy is not trusted. */
async function openWebSocket(origin: string) {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  const socket = new WebSocket(`wss://localhost:${new URL(origin).port}/socket`);
  await once(socket, "open");
  let ending: number | null = null;
  socket.addEventListener("close", ({ code }) => {
    ending = code;
  });
  return {
    /** The status of the close frame, 1006 if it was cut off; null while it is open. */
    ending: () => ending,
    /** Sends a text. @returns the answer */
    async ask(text: string): Promise<string> {
      socket.send(text);
      const [{ data }] = await once(socket, "message");
      return String(data);
    },
  };
}
