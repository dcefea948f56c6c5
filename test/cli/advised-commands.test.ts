import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Command } from "commander";
import { loadProgram } from "../../src/cli/command-line.ts";

const root = join(import.meta.dirname, "../..");

test("each command that a text of the code or the docs names exists, with its options", async () => {
  const program = await loadProgram({ env: {}, finish() {} });
  const unknown = textsInFiles().flatMap(({ path, text }) =>
    commandsIn(text)
      .filter((words) => !exists(program, words))
      .map((words) => `${path}: hotpush ${words.join(" ")}`),
  );
  assert.deepEqual([...new Set(unknown)], []);
});

/** All lines of code and of the docs; an expression in a template is `…`. */
function textsInFiles(): readonly { readonly path: string; readonly text: string }[] {
  return globSync(["src/**/*.ts", "docs/*.md", "README.md"], {
    cwd: root,
    exclude: ["src/cli/completion.ts"],
  }).flatMap((path) => {
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    const code = lines.filter((line) => !/^\s*(?:\*|\/\*|\/\/|<!--)/.test(line));
    return code.map((line) => ({ path, text: line.replace(/\$\{[^}]*\}/g, "…") }));
  });
}

/** The words after `hotpush`, up to the end of the sentence, the line or the code. */
function commandsIn(text: string): readonly (readonly string[])[] {
  const pattern = /(?<![\w/.@-]|exec |name )hotpush (?!of |printenv |hotpush )([a-z]+[^\n`"';:(),.…\\<]*)/g;
  return [...text.matchAll(pattern)].map(
    ([, words = ""]) => words.trim().split(/ {3,}/)[0]?.split(" ") ?? [],
  );
}

function exists(program: Command, [name = "", ...words]: readonly string[]): boolean {
  const command = program.commands.find((one) => one.name() === name);
  if (command === undefined) return false;
  const known = [command, program].flatMap(({ options }) => options.map(({ long }) => long));
  return words.filter((word) => word.startsWith("--")).every((word) => known.includes(word));
}
