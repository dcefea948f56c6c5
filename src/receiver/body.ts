import type { IncomingMessage } from "node:http";
import type { BodyBudget } from "./body-budget.ts";

export type BodyResult =
  /** A whole body, still in the pieces in which it came: only a signed one is worth the copy. */
  | { readonly kind: "body"; readonly chunks: readonly Buffer[] }
  | { readonly kind: "too-large" }
  | { readonly kind: "evicted" }
  /** The sender went away, or was cut off, before the body was whole. */
  | { readonly kind: "aborted" };

export interface BodyOptions {
  readonly limitBytes: number;
  readonly budget: BodyBudget;
  /** Gets each chunk as it arrives, so that hashing a large body never blocks for long. */
  readonly onChunk: (chunk: Buffer) => void;
}

/** Reads the body byte for byte as it was sent, and no more than `limitBytes` of it. */
export function readBody(
  request: IncomingMessage,
  { limitBytes, budget, onChunk }: BodyOptions,
): Promise<BodyResult> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isSettled = false;
    const arriving = budget.enter(declaredBytes(request), () => settle({ kind: "evicted" }));

    function settle(result: BodyResult): void {
      if (isSettled) return;
      isSettled = true;
      budget.leave(arriving);
      if (result.kind !== "body") discardAll(chunks);
      resolve(result);
    }

    function waitForTurn(turn: Promise<void>): void {
      let isWaiting = true;
      request.pause();
      // Else Node reads 64 KiB more before it stops. Not now, since Node resumes the socket after each part.
      setImmediate(() => {
        if (isWaiting && !isSettled) request.socket.pause();
      });
      void turn.then(() => {
        isWaiting = false;
        request.resume();
        request.socket.resume();
      });
    }

    request.on("data", (chunk: Buffer) => {
      if (isSettled) return discard(chunk);
      length += chunk.length;
      if (length > limitBytes) return settle({ kind: "too-large" });
      onChunk(chunk);
      chunks.push(chunk);
      const turn = budget.grow(arriving, chunk.length);
      if (turn) waitForTurn(turn);
    });
    request.on("end", () => settle({ kind: "body", chunks }));
    request.on("error", () => settle({ kind: "aborted" }));
    request.on("close", () => settle({ kind: "aborted" }));
  });
}

/** The Content-Length, which Node has checked to be a number, or 0. */
export function declaredBytes(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
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

/**
 * Frees the memory of a chunk that nobody needs any more at once. The garbage collector would do so only after another
 * 64 MB or so have come in, which a flood of large bodies would then hold on top of everything else.
 */
export function discard({ buffer, length }: Buffer): void {
  // A chunk that shares its memory with others is left alone.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}
