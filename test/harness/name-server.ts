import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Scope } from "./temporary.ts";

/** A DNS server on loopback that acts as Docker's: each name has the addresses that were set last. */
export interface NameServer {
  readonly port: number;
  /** Sets the addresses of every name; resolves after they have been looked up. */
  readonly lead: (...addresses: readonly string[]) => Promise<void>;
}

const typeA = 1;

/** Starts one. Its answers are valid for a second. */
export async function startNameServer(scope: Scope): Promise<NameServer> {
  let addresses: readonly string[] = [];
  let asked = Promise.withResolvers<void>();
  const server = createSocket("udp4");
  server.on("message", (query, { port, address }) => {
    const isForA = query.readUInt16BE(endOfName(query)) === typeA;
    server.send(answerTo(query, isForA ? addresses : []), port, address);
    if (isForA) asked.resolve();
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  scope.after(() => server.close());
  return {
    port: server.address().port,
    lead(...next) {
      addresses = next;
      asked = Promise.withResolvers();
      return asked.promise;
    },
  };
}

/** The end of the question's name, after the header of twelve bytes. */
function endOfName(query: Buffer): number {
  return query.indexOf(0, 12) + 1;
}

function answerTo(query: Buffer, addresses: readonly string[]): Buffer {
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  const question = query.subarray(12, endOfName(query) + 4);
  // A pointer to the name of the question, type A, class IN, for a second, four bytes.
  const records = addresses.map((one) =>
    Buffer.from([0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 1, 0, 4, ...one.split(".").map(Number)]),
  );
  return Buffer.concat([head, question, ...records]);
}
