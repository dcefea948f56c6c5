import { join } from "node:path";
import { liveMount, machineProject, machineServices } from "../../config/machine-part.ts";
import type { MachinePart } from "../../machine-part/find.ts";
import { type Engine, filteredBy, getJson } from "../../platform/docker/engine.ts";
import { isInContainer } from "../../platform/docker/mountinfo.ts";
import { sendHttp } from "../../platform/http.ts";
import { withShortPath } from "../../platform/unix-socket.ts";

/** A container of the machine part, as the engine describes it. */
export interface MachineContainer {
  readonly Name: string;
  readonly Config: { readonly Image: string; readonly Labels: Readonly<Record<string, string>> | null };
  readonly HostConfig: { readonly RestartPolicy?: { readonly Name?: string } };
  readonly State: { readonly Status: string; readonly Health?: { readonly Status: string } };
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly Gateway: string; readonly NetworkID: string }>>;
    readonly SandboxKey?: string;
  };
}

/** The containers of the machine part by service; a service without one is missing. */
export async function probeMachineContainers(engine: Engine): Promise<ReadonlyMap<string, MachineContainer>> {
  const label = [`com.docker.compose.project=${machineProject}`, "com.docker.compose.oneoff=False"];
  const path = `/containers/json?all=1&${filteredBy({ label })}`;
  const listed = await getJson<readonly { readonly Id: string }[]>(engine, path);
  const inspect = ({ Id }: { readonly Id: string }) =>
    getJson<MachineContainer>(engine, `/containers/${Id}/json`);
  const containers = await Promise.all(listed.map(inspect));
  return new Map(containers.map((one) => [one.Config.Labels?.["com.docker.compose.service"] ?? "", one]));
}

/** Where Caddy listens: in a container of the machine part by its name, else at the ports of this machine. */
export function caddyAddress(
  { env }: MachinePart,
  scheme: "http" | "https",
): { readonly host: string; readonly port: number } {
  const usual = scheme === "http" ? 80 : 443;
  if (isInContainer()) return { host: machineServices.caddy, port: usual };
  return { host: "127.0.0.1", port: Number(env[scheme === "http" ? "HTTP_PORT" : "HTTPS_PORT"] || usual) };
}

/** What Caddy's admin API answered, or why it did not. */
export type AdminAnswer =
  | { readonly kind: "answer"; readonly status: number; readonly body: string }
  | { readonly kind: "none"; readonly code: string };

const answerTimeoutMs = 5_000;

/** Asks Caddy's admin API. @param caddyfile the body of a POST; without it, a GET */
export async function askCaddy(
  { state }: MachinePart,
  path: string,
  caddyfile?: string,
): Promise<AdminAnswer> {
  const socket = join(isInContainer() ? liveMount : state.live, "admin.sock");
  const headers = { host: "localhost", "content-type": "text/caddyfile" };
  const body = caddyfile === undefined ? {} : { method: "POST", body: caddyfile };
  const request = { ...body, headers, timeoutMs: answerTimeoutMs };
  try {
    const answer = await withShortPath(socket, (socketPath) => sendHttp({ socketPath, path }, request));
    return { kind: "answer", status: answer.status, body: answer.body.toString() };
  } catch (error) {
    return { kind: "none", code: (error as NodeJS.ErrnoException).code ?? "no answer" };
  }
}
