import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { makeShop, type Shop } from "../lab/shop.ts";

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
    const { code, output } = await shop.release(2, "remark", expand);
    assert.equal(code, 0, output);
    assert.match(output, /migrate +run .* ended with exit code 0[\s\S]*app +start /);
    assert.equal(await shop.version(), "v2");
  }

  async function contracts(): Promise<void> {
    const { code, output } = await shop.release(3, "remark", contract);
    assert.equal(code, 0, output);
    assert.equal(await columns(), "id,remark");
  }

  async function failsToMigrate(): Promise<void> {
    const containers = await shop.containers("app");
    const { code, output } = await shop.release(4, "total", failing);
    assert.equal(code, 1, output);
    assert.match(output, /FAILED: migrate should run to its end, but container \S+ ended with exit code 1/);
    assert.match(output, /division by zero/);
    assert.deepEqual(await shop.containers("app"), containers);
    assert.equal(await columns(), "id,remark");
  }

  /** The migration of the version before would fail: it does not know the last file. */
  async function goesBack(): Promise<void> {
    const { code, output } = await shop.rollOut({ args: ["--back"] });
    assert.equal(code, 0, output);
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
