import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { outputOf, type TestProject } from "../lab/project.ts";
import { makeRolledProject } from "../lab/rolled-project.ts";

/** The new columns come while the old version serves, and it takes a while. */
const expand =
  "SELECT pg_sleep(2); ALTER TABLE orders ADD COLUMN remark text; UPDATE orders SET remark = note;";
const contract = "ALTER TABLE orders DROP COLUMN note;";
const failing = "ALTER TABLE orders ADD COLUMN total int; SELECT 1 / 0;";

onEngine("an app with a database and a migration on a real engine", (env) => {
  let shop: Shop;

  before(async () => {
    shop = await makeShop(env);
  });
  after(() => shop?.remove());

  test("migrations, a failed one and a roll back fail no request and lose no row", async () => {
    const { answers, versions } = await shop.underLoad(async () => {
      await expands();
      await contracts();
      await failsToMigrate();
      await goesBack();
    });
    assert.deepEqual(versions, ["v1", "v2", "v3"]);
    assert.equal(await shop.ask("SELECT count(*) FROM orders"), String(answers.length));
  });

  async function expands(): Promise<void> {
    const output = await outputOf(shop.release(2, "remark", expand));
    assert.match(output, /migrate +run .* ended with exit code 0[\s\S]*app +start /);
    assert.equal(await shop.version(), "v2");
  }

  async function contracts(): Promise<void> {
    await outputOf(shop.release(3, "remark", contract));
    assert.equal(await columns(), "id,remark");
  }

  async function failsToMigrate(): Promise<void> {
    const containers = await shop.containers("app");
    const output = await outputOf(shop.release(4, "total", failing), 1);
    assert.match(output, /FAILED: migrate should run to its end, but container \S+ ended with exit code 1/);
    assert.match(output, /division by zero/);
    assert.deepEqual(await shop.containers("app"), containers);
    assert.equal(await columns(), "id,remark");
  }

  /** The migration of the version before would fail: it does not know the last file. */
  async function goesBack(): Promise<void> {
    const output = await outputOf(shop.rollOut({ args: ["--back"] }));
    assert.match(output, /migrate +note +is not run in a roll back: what it changed stays as it is/);
    assert.match(output, /^ +migrate +skipped +not run in a roll back/m);
    assert.equal(await shop.version(), "v2");
    assert.equal(
      await shop.ask("SELECT string_agg(file, ',' ORDER BY file) FROM migrations"),
      "1.sql,2.sql,3.sql",
    );
  }

  function columns(): Promise<string> {
    const named = "string_agg(column_name, ',' ORDER BY column_name)";
    return shop.ask(`SELECT ${named} FROM information_schema.columns WHERE table_name = 'orders'`);
  }
});

type Shop = Awaited<ReturnType<typeof makeShop>>;

/** The lab's project with an app on PostgreSQL, and a migration that the app waits for; its first version serves. */
async function makeShop(labEnv: NodeJS.ProcessEnv) {
  const project = await makeRolledProject(labEnv, async (made) => {
    await writeFile(join(made.directory, "compose.override.yaml"), JSON.stringify(composeFile(made)));
    await writeVersion(made, 1, "note");
  });
  /** Writes a version of the app, which writes to `column` of the table `orders`, with a migration, and rolls it out. */
  const release = async (number: number, column: string, migration: string) => {
    await writeVersion(project, number, column);
    await writeFile(join(project.directory, "shop", "sql", `${number}.sql`), migration);
    return project.rollOut({ args: ["--commit", String(number).repeat(40)] });
  };
  const psql = ["psql", "--dbname", "shop", "--tuples-only", "--no-align", "--command"];
  /** Queries the database. @returns psql's unaligned output */
  const ask = (query: string) => project.docker("compose", "exec", "--no-TTY", "db", ...psql, query);
  return { ...project, release, ask };
}

function writeVersion({ directory }: TestProject, number: number, column: string): Promise<void> {
  const version = { version: `v${number}`, column };
  return writeFile(join(directory, "shop", "version.json"), JSON.stringify(version));
}

function composeFile({ name }: TestProject): object {
  const image = `${name}-shop`;
  const isReady = { db: { condition: "service_healthy" } };
  const check = ["CMD", "pg_isready", "--host", "127.0.0.1"];
  const healthcheck = { test: check, interval: "5s", start_period: "30s", start_interval: "200ms" };
  return {
    services: {
      db: { build: "shop/postgres", volumes: ["data:/var/lib/postgresql"], healthcheck },
      migrate: { image, command: ["node", "migrate.js"], depends_on: isReady },
      app: {
        image,
        build: { context: ".", dockerfile: "shop/Dockerfile" },
        depends_on: { ...isReady, migrate: { condition: "service_completed_successfully" } },
      },
    },
    volumes: { data: {} },
  };
}
