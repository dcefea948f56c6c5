import { once } from "node:events";
import type { AddressInfo, ListenOptions, Server } from "node:net";
import type { Scope } from "./temporary.ts";

/** Makes `server` listen on a free port until the test ends. @returns the port */
export async function listenHere(scope: Scope, server: Server): Promise<number> {
  await listenOn(scope, server, { host: "127.0.0.1", port: 0 });
  return (server.address() as AddressInfo).port;
}

/** Makes `server` listen on the socket at `path` until the test ends. @returns the path */
export async function listenAt(scope: Scope, server: Server, path: string): Promise<string> {
  await listenOn(scope, server, { path });
  return path;
}

async function listenOn(scope: Scope, server: Server, options: ListenOptions): Promise<void> {
  const open = new Set<{ destroy: () => void }>();
  server.on("connection", (socket) => open.add(socket));
  server.listen(options);
  await once(server, "listening");
  scope.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
}
