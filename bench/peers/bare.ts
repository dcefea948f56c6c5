import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

/**
 * A minimal receiver on Node: read, hash, compare, parse. No check, no limit, no log, no framework. The difference to
 * Hotpush is the cost of everything else in Hotpush.
 */
const { PORT = "0", SECRET = "" } = process.env;

createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    const expected = createHmac("sha256", SECRET).update(body).digest();
    const claimed = Buffer.from(
      String(request.headers["x-hub-signature-256"]).slice("sha256=".length),
      "hex",
    );
    const isAuthentic = claimed.length === expected.length && timingSafeEqual(claimed, expected);
    const payload = isAuthentic ? (JSON.parse(body.toString()) as { ref?: string }) : null;
    const status = payload?.ref === "refs/heads/main" ? 202 : payload ? 200 : 401;
    response.writeHead(status, { "content-type": "application/json" }).end('{"status":"ignored"}');
  });
}).listen(Number(PORT), "127.0.0.1");

// Node writes its cache of compiled code when it exits, not when it is killed.
process.on("SIGTERM", () => process.exit());
