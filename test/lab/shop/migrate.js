// Runs the new files in sql, each in a transaction of its own.
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

process.on("uncaughtException", ({ message }) => {
  console.error(message);
  process.exit(1);
});
const client = new pg.Client({ host: "db", user: "shop", database: "shop" });
await client.connect();
await client.query("CREATE TABLE IF NOT EXISTS migrations (file text PRIMARY KEY)");
const known = readdirSync("sql").sort();
const { rows } = await client.query("SELECT file FROM migrations ORDER BY file");
const seen = rows.map(({ file }) => file);
const unknown = seen.filter((file) => !known.includes(file));
if (unknown.length > 0) throw new Error(`the database is ahead: ${unknown.join(", ")} is not known here`);
for (const file of known.filter((name) => !seen.includes(name))) {
  await client.query("BEGIN");
  await client.query(readFileSync(`sql/${file}`, "utf8"));
  await client.query("INSERT INTO migrations VALUES ($1)", [file]);
  await client.query("COMMIT");
  console.log(`${file} applied`);
}
await client.end();
