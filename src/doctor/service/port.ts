import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type Check, type Fault, judge, ok, problem, skipped } from "../check.ts";
import type { Scene } from "../scene.ts";
import { findInCompose } from "./in-compose.ts";

/** Only one program can listen on a port: the service itself, or nobody yet. */
export const portCheck: Check = {
  id: "port",
  group: "Service",
  subject: "the port is the service's, or free for it",
  async look(scene) {
    const { host, port } = scene;
    if ((await scene.service()).kind === "hotpush") return ok(`Hotpush listens on ${port}`);
    if ((await findInCompose(scene)) !== null) return skipped("the service has its port in a container");
    const code = await tryToListen(host, port);
    return code === null ? ok(`${port} is free`) : judge([await refused(code, scene)], "");
  },
};

async function refused(code: string, { host, port, settings }: Scene): Promise<Fault> {
  if (code === "EADDRINUSE") {
    const free = await freePort(host);
    return problem(
      `Port ${port} is taken by another program (ss -ltnp 'sport = :${port}' shows which). ${free} is free; the proxy, or the form of the git host, must name it too.`,
      settings.set("WEBHOOK_PORT", String(free)),
    );
  }
  if (code === "EACCES") {
    const text = `Port ${port} may not be taken by this user (uid ${process.getuid?.()}); ports above 1023 may.`;
    return problem(text, settings.set("WEBHOOK_PORT", "9000"));
  }
  const text = `The service cannot listen on ${host}:${port} (${code}): that is no address of this machine.`;
  return problem(text, settings.unset("WEBHOOK_HOST"));
}

/** @returns null where it went well, else the error's code */
async function tryToListen(host: string, port: number): Promise<string | null> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, "listening");
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown error";
  } finally {
    server.close();
  }
}

async function freePort(host: string): Promise<number> {
  for (const port of [9001, 9002, 9003, 9080]) if ((await tryToListen(host, port)) === null) return port;
  const server = createServer().listen({ host, port: 0 });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
