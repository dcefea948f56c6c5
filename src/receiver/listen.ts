import { once } from "node:events";
import type { Server } from "node:http";
import { ProblemError } from "../problems.ts";

/**
 * Opens the door.
 *
 * @throws ProblemError `address_unavailable` where the address cannot be had, with what to set instead
 */
export async function listen(
  receiver: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  try {
    receiver.listen({ host, port });
    await once(receiver, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ProblemError({ code: "address_unavailable", detail: addressDetail(code, host, port) }, error);
  }
}

function addressDetail(code: string | undefined, host: string, port: number): string {
  if (code === "EADDRINUSE")
    return `Port ${port} is taken by another program. Set WEBHOOK_PORT to a free one.`;
  if (code === "EACCES")
    return `Port ${port} may not be taken by this user. Set WEBHOOK_PORT to one above 1023.`;
  return `The service cannot listen on ${host}:${port} (${code ?? "unknown error"}). Set WEBHOOK_HOST to an address of this machine.`;
}
