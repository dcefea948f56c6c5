import assert from "node:assert/strict";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { writePlanned } from "../../src/setup/planned-file.ts";
import { planEnv } from "../../src/setup/remove.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

test("the other lines of .env stay, and so do its mode and further compose files", (t) => {
  const { root, at } = makeCheckout(t, { "compose.yaml": "", "more.yaml": "" });
  const files = ["compose.yaml", "more.yaml", "compose.hotpush.yaml"].join(":");
  writeFileSync(at(".env"), `TITLE=The shop\n\nCOMPOSE_FILE=${files}\n`);
  chmodSync(at(".env"), 0o640);
  writePlanned(planEnv(root));
  const shop = at("compose.yaml");
  const more = at("more.yaml");
  assert.equal(readFileSync(at(".env"), "utf8"), `TITLE=The shop\n\nCOMPOSE_FILE=${shop}:${more}\n`);
  assert.equal(statSync(at(".env")).mode & 0o777, 0o640);
});

test("compose finds its usual files without COMPOSE_FILE, an override of the project too", (t) => {
  const usual = { "compose.yaml": "", "compose.override.yaml": "services: {}\n" };
  const { root, at } = makeCheckout(t, usual);
  const files = [...Object.keys(usual), "compose.hotpush.yaml"].map(at).join(":");
  writeFileSync(at(".env"), `TITLE=The shop\nCOMPOSE_FILE=${files}\n`);
  writePlanned(planEnv(root));
  assert.equal(readFileSync(at(".env"), "utf8"), "TITLE=The shop\n");
});

function makeCheckout(scope: Scope, files: Readonly<Record<string, string>>) {
  const root = temporaryDirectory(scope);
  const at = (name: string) => join(root, name);
  for (const [name, text] of Object.entries(files)) writeFileSync(at(name), text);
  return { root, at };
}
