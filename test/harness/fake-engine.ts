import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { listenAt } from "./listen.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";
import { until } from "./until.ts";

/** A container of a compose service. */
export interface FakeContainer {
  readonly id: string;
  readonly service: string;
  readonly number: number;
  readonly env?: readonly string[];
  readonly hasTerminal?: boolean;
  /** Whether its log goes to somewhere else. */
  readonly isUnreadable?: boolean;
}

/** An engine with the containers of the project in `directory`, whose logs the test writes. */
export async function startFakeEngine(scope: Scope, directory: string) {
  const containers: FakeContainer[] = [];
  const open = new Map<string, { readonly query: URLSearchParams; readonly response: ServerResponse }[]>();
  const labelsOf = ({ service, number }: FakeContainer) => ({
    "com.docker.compose.project.working_dir": directory,
    "com.docker.compose.service": service,
    "com.docker.compose.container-number": String(number),
    "com.docker.compose.oneoff": "False",
  });
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? "", "http://engine");
    const json = (value: unknown) => void response.end(JSON.stringify(value));
    if (pathname === "/containers/json")
      return json(containers.map((one) => ({ Id: one.id, Labels: labelsOf(one) })).reverse());
    const [, id, what] = /^\/containers\/(\w+)\/(\w+)$/.exec(pathname) ?? [];
    const found = containers.find((one) => one.id === id);
    if (pathname !== "/events" && found === undefined) return void response.writeHead(404).end("{}");
    if (found !== undefined && what === "json")
      return json({
        Id: found.id,
        Name: `/${found.id}`,
        Config: { Labels: labelsOf(found), Env: found.env ?? [] },
        State: { Status: "running" },
      });
    if (found?.isUnreadable) return void response.writeHead(501).end('{"message":"no reading"}');
    const kind = found?.hasTerminal ? "raw-stream" : "multiplexed-stream";
    response.writeHead(200, { "content-type": `application/vnd.docker.${kind}` }).flushHeaders();
    const name = found?.id ?? "events";
    open.set(name, [...(open.get(name) ?? []), { query, response }]);
  });
  const socket = await listenAt(scope, server, join(temporaryDirectory(scope), "docker.sock"));
  return {
    env: { DOCKER_HOST: `unix://${socket}` },
    containers,
    /** The answer number `index` to who asks for the log of a container. */
    log: (id: string, index = 0) => until(`a reader of ${id}`, () => open.get(id)?.[index]),
    /** Starts a container, and says so. */
    async start(container: FakeContainer) {
      if (!containers.includes(container)) containers.push(container);
      const { response } = await until("a reader of the events", () => open.get("events")?.[0]);
      response.write(`${JSON.stringify({ Actor: { ID: container.id, Attributes: labelsOf(container) } })}\n`);
    },
  };
}

/** A line as the engine sends it with its time, which is `second` of some minute. */
export function logged(second: number, text: string, stream: 1 | 2 = 1): Buffer {
  const body = Buffer.from(`2026-11-26T12:00:${second.toFixed(9).padStart(12, "0")}Z ${text}`);
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

/** Writes as fast as the other side reads. */
export async function writeAll(response: ServerResponse, pieces: Iterable<Buffer>): Promise<void> {
  for (const piece of pieces) if (!response.write(piece)) await once(response, "drain");
}
