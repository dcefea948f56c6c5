import type { IncomingMessage } from "node:http";
import { formatSize } from "#config/size";
import { discard, type Refusal } from "#platform/http-server/answer";

/** What all bodies that are arriving may hold together. Nobody knows yet whether they are signed. */
const mostHeldBytes = 64 * 1024 ** 2;

/** What a chunk takes beside its bytes: a body can be sent in pieces of one byte. */
const chunkBytes = 512;

/** The bodies that are arriving, the oldest first. */
export interface ArrivingBodies {
  heldBytes: number;
  /** Each refuses its body. */
  readonly drops: Set<() => void>;
}

/**
 * Reads the body byte for byte as it was sent, and no more than `limitBytes` of it. If all bodies together hold too much, the
 * one that has been arriving for longest is dropped: a real push arrives within milliseconds.
 *
 * @param onChunk gets each chunk as it arrives, so that hashing a large body never blocks for long
 * @returns the body in the pieces in which it came, since only a signed one is worth the copy; why it is refused; or null
 *   if the sender went away or was cut off before it was whole
 */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  arriving: ArrivingBodies,
  onChunk: (chunk: Buffer) => void,
): Promise<Buffer[] | Refusal | null> {
  const { promise, resolve } = Promise.withResolvers<Buffer[] | Refusal | null>();
  const chunks: Buffer[] = [];
  let length = 0;
  let heldBytes = 0;
  let isSettled = false;
  const drop = () => settle(tooSlow);

  function settle(result: Buffer[] | Refusal | null): void {
    if (isSettled) return;
    isSettled = true;
    if (arriving.drops.delete(drop)) arriving.heldBytes -= heldBytes;
    if (result !== chunks) discardAll(chunks);
    resolve(result);
  }

  request.on("data", (chunk: Buffer) => {
    if (isSettled) return discard(chunk);
    if (length + chunk.length > limitBytes) return settle(tooLarge(limitBytes));
    onChunk(chunk);
    chunks.push(chunk);
    length += chunk.length;
    heldBytes += chunk.length + chunkBytes;
    arriving.heldBytes += chunk.length + chunkBytes;
    arriving.drops.add(drop);
    for (const dropOldest of arriving.drops) {
      if (arriving.heldBytes <= mostHeldBytes) break;
      dropOldest();
    }
  });
  request.on("end", () => settle(chunks));
  request.on("error", () => settle(null));
  request.on("close", () => settle(null));
  return promise;
}

const tooSlow: Refusal = {
  code: "overloaded",
  detail: "Too many unfinished bodies were arriving at once, and this one arrived too slowly. Send it again.",
  closing: "broken",
};

export function tooLarge(limitBytes: number): Refusal {
  const detail = `The body is larger than ${formatSize(limitBytes)}, the value of WEBHOOK_BODY_LIMIT. Raise it, or push less at once.`;
  return { code: "payload_too_large", detail, closing: "refused" };
}

/** The body in one piece; its chunks cannot be used after that. */
export function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks;
  if (chunks.length === 1 && only) return only;
  const whole = Buffer.concat(chunks);
  discardAll(chunks);
  return whole;
}

export function discardAll(chunks: readonly Buffer[]): void {
  for (const chunk of chunks) discard(chunk);
}
