import assert from "node:assert/strict";
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeProject, type TestProject } from "../lab/project.ts";

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

  before(async () => {
    project = await makeProject(env);
    await rm(join(project.directory, "app"), { recursive: true });
    await cp(example, project.directory, { recursive: true });
    await writeFile(join(project.directory, "app", "server.js"), await withMoreRoutes());
    Object.assign(project.env, { SITE: ":80", HTTP_PORT: new URL(project.origin).port, HTTPS_PORT: "0" });
    Object.assign(project.env, { REPO_PATH: project.directory, WEBHOOK_SECRET: testSecret });
    await project.docker("compose", "up", "--detach", "--build", "--wait", "app", "caddy");
  });
  after(() => project.remove());

  test("if a live file names no running container, a POST arrives whole through the fallback", async () => {
    const body = "x".repeat(1_000);
    const file = join(await project.livePath(), "app");
    await writeFile(file, "nobody\n");
    const response = await fetch(`${project.origin}/echo`, { method: "POST", body });
    assert.equal(await response.text(), body);
    await writeFile(file, "app\n");
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
});
