import type { IncomingMessage } from "node:http";
import type { Admission } from "./admission.ts";
import { discard } from "./discard.ts";

export type BodyResult =
  | { readonly kind: "body"; readonly body: ReceivedBody }
  | { readonly kind: "too-large" }
  | { readonly kind: "evicted" }
  /** The sender went away, or was cut off, before the body was whole. */
  | { readonly kind: "aborted" };

/** A whole body, still in the pieces in which it came: only one that is signed is worth the copy. One call ends it. */
export interface ReceivedBody {
  readonly join: () => Buffer;
  readonly discard: () => void;
}

export interface BodyOptions {
  /** The length announced, 0 where the body comes in chunks of unknown number. */
  readonly declaredBytes: number;
  readonly limitBytes: number;
  readonly admission: Admission;
  /** Sees each chunk as it arrives, so that hashing a large body never blocks for long. */
  readonly onChunk: (chunk: Buffer) => void;
}

/** Reads the body as it was sent, byte by byte the same, and no more than `limitBytes` of it. */
export function readBody(request: IncomingMessage, options: BodyOptions): Promise<BodyResult> {
  const { declaredBytes, limitBytes, admission, onChunk } = options;
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isSettled = false;
    const place = admission.enter(declaredBytes, () => settle({ kind: "evicted" }));

    function settle(result: BodyResult): void {
      if (isSettled) return;
      isSettled = true;
      place.leave();
      if (result.kind !== "body") discardAll(chunks);
      resolve(result);
    }

    function waitForTurn(turn: Promise<void>): void {
      let isWaiting = true;
      request.pause();
      // Else Node reads 64 KiB more before it stops. Not now, since it sets the socket going after each part.
      setImmediate(() => {
        if (isWaiting && !isSettled) request.socket.pause();
      });
      void turn.then(() => {
        isWaiting = false;
        request.resume();
        request.socket.resume();
      });
    }

    function take(chunk: Buffer): void {
      if (isSettled) {
        discard(chunk);
        return;
      }
      length += chunk.length;
      if (length > limitBytes) {
        settle({ kind: "too-large" });
        return;
      }
      onChunk(chunk);
      chunks.push(chunk);
      const turn = place.grow(chunk.length);
      if (turn) waitForTurn(turn);
    }

    request.on("data", take);
    request.on("end", () => settle({ kind: "body", body: received(chunks, length) }));
    request.on("error", () => settle({ kind: "aborted" }));
    request.on("close", () => settle({ kind: "aborted" }));
  });
}

function received(chunks: readonly Buffer[], length: number): ReceivedBody {
  return {
    join() {
      const [only] = chunks;
      if (chunks.length === 1 && only) return only;
      const whole = Buffer.concat(chunks, length);
      discardAll(chunks);
      return whole;
    },
    discard: () => discardAll(chunks),
  };
}

function discardAll(chunks: readonly Buffer[]): void {
  for (const chunk of chunks) discard(chunk);
}
