import { Agent, request } from "node:http";
import type { Delivery } from "../test/harness/delivery.ts";

export interface Sent {
  readonly status: number;
  /** From the call to the last byte of the answer. */
  readonly durationMs: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** Sends one delivery on a keep-alive connection, and waits for the whole answer. */
export function send(url: string, { headers, body }: Delivery): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const length = Buffer.byteLength(body);
    const outgoing = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": length },
      agent,
    });
    outgoing.on("response", (response) => {
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, durationMs: performance.now() - startMs });
      });
      response.on("error", reject);
      response.resume();
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
