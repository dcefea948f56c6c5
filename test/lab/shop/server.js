// An app on PostgreSQL. Each request of the load writes a row, to the column that this version knows.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const { version, column } = JSON.parse(readFileSync("version.json", "utf8"));
const pool = new pg.Pool({ host: "db", user: "shop", database: "shop" });
pool.on("error", ({ message }) => console.error(message));

const server = createServer(async (request, response) => {
  const { searchParams } = new URL(request.url, "http://shop");
  const size = Buffer.concat(await request.toArray()).length;
  try {
    if (searchParams.has("ms")) await write(Number(searchParams.get("ms")));
    else await pool.query("SELECT 1");
    response.end(`${version} ${request.method} ${size}`);
  } catch ({ message }) {
    console.error(message);
    response.writeHead(500).end(message);
  }
});
server.keepAliveTimeout = 75_000;
server.listen(8080);

async function write(ms) {
  await sleep(ms);
  await pool.query(`INSERT INTO orders (${column}) VALUES ($1)`, [version]);
}

// No request is in flight by then.
process.on("SIGTERM", () => process.exit(0));
