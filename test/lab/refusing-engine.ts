import { createServer, request } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { listenAt } from "../harness/listen.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

/**
 * The engine at `dockerHost` until the test ends, but for the requests that it refuses, as one does whose disk is at fault.
 *
 * @param isRefused by method and path
 * @returns its own DOCKER_HOST
 */
export async function refusingEngine(
  scope: Scope,
  isRefused: (request: string) => boolean,
  dockerHost: string = "unix:///var/run/docker.sock",
): Promise<string> {
  const socketPath = dockerHost.replace("unix://", "");
  const server = createServer(async (asked, response) => {
    const { method, url: path, headers } = asked;
    if (isRefused(`${method} ${path}`)) {
      response.writeHead(500).end(JSON.stringify({ message: "device or resource busy" }));
      return;
    }
    // In one piece: the engine may answer, and close, before it has read a body that comes later.
    const body = await buffer(asked);
    const passed = request({ socketPath, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    passed.end(body);
  });
  return `unix://${await listenAt(scope, server, join(temporaryDirectory(scope), "docker.sock"))}`;
}
