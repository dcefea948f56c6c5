import { once } from "node:events";
import type { Server } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { ProblemError } from "#problems";

/**
 * Starts to listen.
 *
 * @param prefix of the names of the variables with the host and the port
 * @throws ProblemError `address_unavailable` if the address cannot be used, with what to set instead
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  prefix: "WEBHOOK" | "PAGE",
): Promise<void> {
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ProblemError(
      { code: "address_unavailable", detail: addressDetail(code, { host, port, prefix }) },
      error,
    );
  }
}

function addressDetail(
  code: string | undefined,
  { host, port, prefix }: { readonly host: string; readonly port: number; readonly prefix: string },
): string {
  if (code === "EADDRINUSE")
    return `Port ${port} is taken by another program. Set ${prefix}_PORT to a free one.`;
  if (code === "EACCES")
    return `Port ${port} may not be taken by this user. Set ${prefix}_PORT to one above 1023.`;
  return `The service cannot listen on ${host}:${port} (${code ?? "unknown error"}). Set ${prefix}_HOST to an address of this machine.`;
}

/** A turn of the event loop that takes longer had something to do: others may have connected meanwhile. */
const quietTurnMs = 0.5;
const longestWaitMs = 500;

/**
 * Stops listening and gives open requests `lastAnswersMs` to be answered.
 *
 * When a listening socket is closed, the kernel resets the connections that it has taken and that nobody has accepted
 * yet, and git hosts do not retry. So it is closed at the end of a turn of the event loop that did little but accept.
 */
export async function closeServer(server: Server, lastAnswersMs: number): Promise<void> {
  await quietTurn();
  const closed = new Promise((resolve) => server.close(resolve));
  await Promise.race([closed, pause(lastAnswersMs, null, { ref: false })]);
  server.closeAllConnections();
  await closed;
}

async function quietTurn(): Promise<void> {
  const startMs = performance.now();
  for (let turnMs = startMs; ; turnMs = performance.now()) {
    await new Promise(setImmediate);
    const nowMs = performance.now();
    const isWholeTurn = turnMs !== startMs;
    if ((isWholeTurn && nowMs - turnMs < quietTurnMs) || nowMs - startMs > longestWaitMs) return;
  }
}
