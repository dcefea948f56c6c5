import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { deliver, githubDelivery, githubPush } from "../harness/delivery.ts";
import { git } from "../harness/repository.ts";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeServer, type ServedProject, type Server } from "../lab/server.ts";

onEngine("what reaches Hotpush on a server, and what reaches the app", (env) => {
  let server: Server;
  let shop: ServedProject;

  before(async () => {
    server = await makeServer(env);
    shop = await server.setUp("shop");
    await shop.untilServed();
  });
  after(() => server?.remove());

  const ask = (path: string, options: RequestInit = {}) => fetch(`${shop.origin}${path}`, options);
  const post = async (path: string, headers: Record<string, string>) =>
    (await ask(path, { method: "POST", headers, body: "{}" })).status;
  const json = { "content-type": "application/json" };
  const event = { ...json, "x-github-event": "push" };

  test("a webhook of the app's own is the app's, and a git host without a secret is told so", async () => {
    assert.equal((await ask("/webhook?hub.challenge=1")).status, 200);
    assert.equal(await post("/webhook", { ...json, "stripe-signature": "t=1,v1=00" }), 200);
    const standard = { "webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,x" };
    assert.equal(await post("/webhook/shop", { ...json, ...standard }), 200);
    assert.equal(await post("/webhook", event), 401);
    assert.equal(await post("/webhook/shop", event), 401);
    const onMachine = await fetch(`${server.origin}/webhook/shop`, {
      method: "POST",
      headers: json,
      body: "{}",
    });
    assert.equal(onMachine.status, 401, "on the machine itself, all of it is Hotpush's");
  });

  test("status, doctor and the next push know of a delivery with a wrong secret", async () => {
    await deliver(shop.origin, githubPush({}, "another secret than the right one"));
    // The only project of the server.
    const statusOfShop = async () => (await server.status()) as unknown as StatusJson;
    const missed = async () => (await statusOfShop()).missed;
    await until("the refusal is known", async () => (await missed())[0]?.reason === "signature_invalid");
    const doctor = JSON.parse((await shop.hotpush("doctor", "missed", "--json")).output) as {
      warnings: number;
    };
    assert.equal(doctor.warnings, 1);
    await shop.push("second");
    assert.deepEqual(await missed(), []);
    const isDeployed = async () => (await statusOfShop()).last[0]?.state === "succeeded";
    await until("the push is deployed", isDeployed, 60_000);
  });

  test("a push counts after the repository was moved, with and without init", async () => {
    const isDeployed = async (repository: string) => {
      const { body } = githubPush({ repository, hotpush: { dryRun: true } });
      const { json } = await deliver(shop.origin, githubDelivery("push", body, shop.secret));
      return "deploy" in Object((json as unknown as { would: unknown }).would);
    };
    assert.equal(await isDeployed("octo/renamed"), true);
    const before = git(shop.checkout, "remote", "get-url", "origin");
    git(shop.checkout, "remote", "set-url", "origin", "https://git.example.com/base/octo/store.git");
    const { code, output } = await shop.hotpush("init", "--yes", "--host", "gitea");
    git(shop.checkout, "remote", "set-url", "origin", before.trim());
    assert.equal(code, 0, output);
    assert.equal(await isDeployed("octo/store"), true);
  });

  test("a WebSocket stays open while another project is set up", async () => {
    const socket = new WebSocket(`${shop.origin.replace("http", "ws")}/socket`);
    await once(socket, "open");
    const closed = once(socket, "close");
    const blog = await server.setUp("blog");
    await blog.untilServed();
    socket.send("who");
    const [{ data }] = await Promise.race([once(socket, "message"), closed]);
    assert.equal(data, await shop.version());
    socket.close();
  });

  test("with a path of its own for deliveries, init leaves /webhook to the app altogether", async () => {
    const { code, output } = await shop.hotpush("init", "--yes", "--webhook-path", "/hooks/hotpush");
    assert.equal(code, 0, output);
    assert.match(output, /A signed ping to http\S+\/hooks\/hotpush was answered/);
    assert.equal(await post("/webhook", event), 200);
    assert.equal(await post("/hooks/hotpush", event), 401);
    const again = await shop.hotpush("init", "--yes");
    assert.equal(again.code, 0, again.output);
    assert.equal(await post("/hooks/hotpush", event), 401, "it is kept");
  });

  test("init says that the git host cannot reach an address that leads elsewhere", async () => {
    const { code, output } = await shop.hotpush("init", "--yes", "--url", "http://127.0.0.9:1");
    assert.equal(code, 0, output);
    assert.match(
      output,
      /A signed ping to the payload URL failed[\s\S]+127\.0\.0\.9:1\/hooks\/hotpush does not answer/,
    );
  });
});
