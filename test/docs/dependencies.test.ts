import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

test("docs/dependencies.md has a reason for every dependency", () => {
  const page = read("docs/dependencies.md");
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read("package.json"));
  const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  assert.deepEqual(
    names.filter((name) => !page.includes(`\`${name}\``)),
    [],
  );
});
