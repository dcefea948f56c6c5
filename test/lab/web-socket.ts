import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { Duplex } from "node:stream";
import { until } from "../harness/until.ts";

/** A WebSocket through a proxy with an untrusted certificate. */
export interface WebSocketClient {
  /** Sends a text. @returns the answer */
  readonly ask: (text: string) => Promise<string>;
  /** The status of the close frame, or cut off; null while it is open. */
  readonly ending: () => number | "cut" | null;
}

/** Opens one at `origin`; texts are shorter than 126 bytes. */
export async function openWebSocket(origin: string): Promise<WebSocketClient> {
  const headers = {
    host: "localhost",
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": randomBytes(16).toString("base64"),
  };
  const sent = request(`${origin}/socket`, { headers, rejectUnauthorized: false, servername: "localhost" });
  sent.end();
  sent.on("response", ({ statusCode }) => sent.destroy(new Error(`status ${statusCode}, no WebSocket`)));
  const [, socket]: [IncomingMessage, Duplex] = (await once(sent, "upgrade")) as never;
  const texts: string[] = [];
  let ending: number | "cut" | null = null;
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (let length = received[1] ?? 0; received.length >= 2 + length; length = received[1] ?? 0) {
      const [opcode, payload] = [(received[0] ?? 0) & 15, received.subarray(2, 2 + length)];
      received = received.subarray(2 + length);
      if (opcode === 8) ending = payload.readUInt16BE();
      else texts.push(payload.toString());
      if (received.length < 2) break;
    }
  });
  const ended = () => {
    ending ??= "cut";
  };
  socket.on("close", ended).on("end", ended).on("error", ended);
  return {
    ending: () => ending,
    async ask(text) {
      const count = texts.length;
      // A client must mask its frames; a mask of zeros changes nothing.
      socket.write(
        Buffer.concat([Buffer.from([0x81, 0x80 | Buffer.byteLength(text), 0, 0, 0, 0]), Buffer.from(text)]),
      );
      return until("an answer", () => texts[count]);
    },
  };
}
