import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { ownUid } from "../../platform/files.ts";
import { type CheckFinding, type Fault, ok, problem, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { doesReceiveAnswer } from "../projects/inbox.ts";
import { findInCompose } from "./own-service.ts";

/** Only one program can listen on a port: the service itself, or none yet. */
export async function checkPort(context: DoctorContext): Promise<CheckFinding> {
  const { host, port } = context;
  if ((await context.service()).kind === "hotpush") return ok(`Hotpush listens on ${port}`);
  if ((await findInCompose(context)) !== null) return skip("the service has its port in a container");
  if (await doesReceiveAnswer(context)) return skip("receive has it, on another network");
  const code = await tryToListen(host, port);
  return code === null ? ok(`${port} is free`) : await refused(code, context);
}

async function refused(code: string, { host, port, settings }: DoctorContext): Promise<Fault> {
  if (code === "EADDRINUSE") {
    const free = await freePort(host);
    const text = `Port ${port} is taken by another program (ss -ltnp 'sport = :${port}' shows which). ${free} is free; the proxy, or the form of the git host, must name it too.`;
    return problem(text, settings.set("WEBHOOK_PORT", String(free)));
  }
  if (code === "EACCES") {
    const text = `This user (uid ${ownUid()}) may not take port ${port}; ports above 1023 are open to all users.`;
    return problem(text, settings.set("WEBHOOK_PORT", "9000"));
  }
  const text = `The service cannot listen on ${host}:${port} (${code}): that is no address of this machine.`;
  return problem(text, settings.unset("WEBHOOK_HOST"));
}

/** @returns null if it worked, else the error's code */
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
