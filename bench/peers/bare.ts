import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

/**
 * The least that any receiver on Node can do: read, hash, compare, parse. No check, no limit, no log, no framework. How
 * near Hotpush comes to it says what all the rest of Hotpush costs.
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
