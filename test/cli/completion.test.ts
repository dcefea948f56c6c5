import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { launcher } from "../harness/hotpush.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** What each shell must offer: the typed words, the last of them incomplete, and some of the answers. */
const cases = [
  { words: ["sta"], some: ["status"], none: ["history"] },
  { words: ["logs", "--fo"], some: ["--follow"], none: ["--json"] },
  { words: ["secret", ""], some: ["rotate", "drop-previous"], none: ["status"] },
  { words: ["secret", "rotate", "--"], some: ["--env-file", "--stdin"], none: ["--follow"] },
  { words: ["deploy", "m"], some: ["main", "master"], none: ["develop"] },
] as const;

const bash = `source "$0"; COMP_WORDS=(hotpush "$@"); COMP_CWORD=$#; _hotpush; printf '%s\\n' "\${COMPREPLY[@]}"`;
const zsh = `compdef() {}; compadd() { print -l -- "\${(@P)2}" }; source "$0"
  words=(hotpush "$@"); CURRENT=\${#words}; _hotpush`;
/** How each shell is asked. zsh's own system needs a terminal, so this checks what our function gives it. */
const shells: Readonly<
  Record<"bash" | "zsh" | "fish", (script: string, words: readonly string[]) => string[]>
> = {
  bash: (script, words) => ["--norc", "-c", bash, script, ...words],
  zsh: (script, words) => ["-f", "-c", zsh, script, ...words],
  fish: (script, words) => [
    "--no-config",
    "-c",
    `source ${script}; complete -C "hotpush ${words.join(" ")}"`,
  ],
};

for (const shell of ["bash", "zsh", "fish"] as const)
  test(
    `${shell} completes commands, options and what arguments can be`,
    shell === "bash" ? {} : needs(shell),
    (t) => {
      const script = scriptFor(t, shell);
      const HOME = temporaryDirectory(t);
      for (const { words, some, none } of cases) {
        const [typed = ""] = words.slice(-1);
        const given = run(shell, shells[shell](script, words), { HOME }).map(
          (line) => line.split("\t")[0] ?? "",
        );
        const shown = given.filter((word) => word.startsWith(typed));
        for (const word of some) assert.ok(shown.includes(word), `${words.join(" ")}: ${word} in ${given}`);
        for (const word of none) assert.ok(!shown.includes(word), `${words.join(" ")}: no ${word}`);
      }
    },
  );

function scriptFor(t: TestContext, shell: string): string {
  const path = join(temporaryDirectory(t), `hotpush.${shell}`);
  writeFileSync(path, execFileSync(launcher, ["completion", shell]));
  return path;
}

function run(shell: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): readonly string[] {
  const { stdout, stderr, status } = spawnSync(shell, args, {
    encoding: "utf8",
    env: { ...process.env, PATH: `${dirname(launcher)}:${process.env.PATH}`, ...env },
  });
  assert.deepEqual([status, stderr], [0, ""], `${shell}: ${stderr}`);
  return stdout.split("\n").filter((line) => line !== "");
}
