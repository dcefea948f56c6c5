import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import type { Scope } from "./temporary.ts";

/** Has `server` listen on a free port of this machine for the length of a test, and gives the port. */
export async function listenHere(scope: Scope, server: Server): Promise<number> {
  const open = new Set<{ destroy: () => void }>();
  server.on("connection", (socket) => open.add(socket));
  server.listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  scope.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
