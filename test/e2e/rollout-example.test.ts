import assert from "node:assert/strict";
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { onEngine } from "../lab/on-engine.ts";
import { buildImage, makeProject, outputOf, removeImage, type TestProject } from "../lab/project.ts";

const example = join(import.meta.dirname, "../../examples/compose");

/** The example's server, extended to echo a body or cut the connection. */
async function withMoreRoutes(): Promise<string> {
  const server = await readFile(join(example, "app", "server.js"), "utf8");
  const routes = `
  if (request.url === "/echo") return request.toArray().then((chunks) => response.end(Buffer.concat(chunks)));
  if (request.url === "/crash") {
    console.log("cut off");
    return request.socket.destroy();
  }`;
  return server.replace(
    'if (request.url === "/health")',
    `${routes.trim()}\n  if (request.url === "/health")`,
  );
}

onEngine("examples/compose", (env) => {
  let project: TestProject;
  let image: string;

  before(async () => {
    project = await makeProject(env);
    await rm(join(project.directory, "app"), { recursive: true });
    await cp(example, project.directory, { recursive: true });
    await writeFile(join(project.directory, "app", "server.js"), await withMoreRoutes());
    Object.assign(project.env, { SITE: ":80", HTTP_PORT: new URL(project.origin).port, HTTPS_PORT: "0" });
    project.env.CHECK_URL = `${project.origin}/health`;
    image = `hotpush-e2e:${project.name}`;
    await buildImage(project.env, image);
    Object.assign(project.env, {
      HOTPUSH_IMAGE: image,
      REPO_PATH: project.directory,
      WEBHOOK_SECRET: testSecret,
    });
  });
  after(async () => {
    await project.remove();
    await removeImage(project.env, image);
  });

  test("plain compose starts it, before any roll-out", async () => {
    await project.docker("compose", "up", "--detach", "--build", "--wait");
    assert.match(await page(), /^Hello from version 1 /);
  });

  test("if a live file names no running container, a POST arrives whole through the fallback", async () => {
    const body = "x".repeat(1_000);
    const file = join(await project.livePath(), "app");
    await writeFile(file, "nobody\n");
    const response = await fetch(`${project.origin}/echo`, { method: "POST", body });
    assert.equal(await response.text(), body);
    await writeFile(file, "app\n");
  });

  test("a roll-out brings the next version", async () => {
    const server = join(project.directory, "app", "server.js");
    await writeFile(server, (await readFile(server, "utf8")).replace("version 1", "version 2"));
    const output = await outputOf(project.rollOut());
    assert.match(output, /^ +app +rolled +\S+ → \S+, .*drained in [\d.]+ m?s$/m);
    assert.match(await page(), /^Hello from version 2 /);
  });

  test("a request that the app cut off is not retried", async () => {
    const before = await count();
    const response = await fetch(`${project.origin}/crash`, { method: "POST", body: "x" });
    assert.equal(response.status, 502);
    assert.equal(await count(), before + 1);
  });

  /** How often the app got a request that it cuts off. */
  async function count(): Promise<number> {
    const [app = ""] = await project.containerNames("app");
    return (await project.docker("logs", app)).split("\n").filter((line) => line === "cut off").length;
  }

  async function page(): Promise<string> {
    return (await fetch(project.origin, { headers: { connection: "close" } })).text();
  }
});
