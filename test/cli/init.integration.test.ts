import assert from "node:assert/strict";
import { test } from "node:test";
import { makeProject } from "./init-project.ts";

test("init says what it found, what it writes, and what happens to each published port", async (t) => {
  const port = (target: number, published: string) => ({
    mode: "ingress",
    target,
    published,
    protocol: "tcp",
  });
  const services = {
    db: { image: "postgres:17", ports: [port(5432, "48183")] },
    web: { build: { context: "/elsewhere" }, networks: { default: null }, ports: [port(3000, "48182")] },
  };
  const { repository, env, init } = makeProject(t, { services });
  const { stdout } = await init(["--check", "--url", "https://shop.example.org"]);
  const shown = stdout
    .replace(/diff --git[\s\S]*?\n\n/, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(repository.directory, "<checkout>")
    .replaceAll(env.SERVER_PATH, "<server>");
  assert.equal(shown.trim().replaceAll(/ (?=- |(?:new|changed|In|Remote|Server) )/g, "\n"), snapshot.trim());
});

/** Without the breaks of lines. */
const snapshot = `
Project shop, in <checkout>
Remote github.com, octo/shop
Server <server>, which is made now: Caddy and Hotpush for all projects
In <server>, for all projects of this server:
new compose.yaml Caddy, and Hotpush in containers
new Caddyfile what the sites of all projects import
new .env the values of this machine
new projects/shop.env the project, and its secret
new sites/shop.caddy its addresses
In <checkout>:
new deploy.sh pulls, builds, replaces, checks; yours to change
new compose.hotpush.yaml your services as Caddy reaches them
new .env adds compose.hotpush.yaml to your compose file
changed .git/info/exclude compose.hotpush.yaml and .env: this machine's alone
- Caddy serves web (port 3000 in its container) at port 48182.
- Port 48183 of db stays published: PostgreSQL.
`;
