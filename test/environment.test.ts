import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";

const environmentPath = join(import.meta.dirname, "harness/environment.ts");

test("every file that starts a program or reads the environment imports that of the tests", () => {
  const files = globSync("**/*.ts", { cwd: import.meta.dirname }).map((name) =>
    join(import.meta.dirname, name),
  );
  const concerned = files.filter((path) =>
    /^(?:import (?!type)|\} from ).*"node:child_process"|\bprocess(?:\.env|\))/m.test(
      readFileSync(path, "utf8"),
    ),
  );
  const unclean = concerned.filter((path) => !isProgram(path) && !reaches(path, new Set()));
  assert.deepEqual(
    unclean.map((path) => relative(import.meta.dirname, path)),
    [],
    'each needs: import "<…>/harness/environment.ts";',
  );
});

/** Run by tests with an environment that they made, or runs them. */
function isProgram(path: string): boolean {
  const programs = ["lab/hotpush.ts", "harness/planted-machine.ts", "run.ts"];
  return programs.includes(relative(import.meta.dirname, path));
}

/** Whether the module imports the environment of the tests, itself or through others, before its own body runs. */
function reaches(path: string, seen: Set<string>): boolean {
  if (path === environmentPath) return true;
  if (seen.has(path) || !path.startsWith(import.meta.dirname)) return false;
  seen.add(path);
  const imported = [
    ...readFileSync(path, "utf8").matchAll(/^(?:import|\} from|export .* from)\b.*?"(\.[^"]+)";$/gm),
  ];
  return imported.some(([, to = ""]) => reaches(join(dirname(path), to), seen));
}
