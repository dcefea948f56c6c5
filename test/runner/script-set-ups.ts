import { chmodSync, copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { quickScript } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";
import { type BrokenSetUp, makeRepository, runInShell } from "./set-ups.ts";

/** What can be wrong with the script itself. */
export const brokenScripts: readonly BrokenSetUp[] = [
  {
    name: "no script",
    code: "script_missing",
    cure: /Copy examples\/deploy\.sh there, run: chmod \+x deploy\.sh, and commit it\.$/,
    make: ({ repoPath }) => mkdirSync(repoPath),
    repair({ scriptPath }) {
      copyFileSync(new URL("../../examples/deploy.sh", import.meta.url), scriptPath);
      writeFileSync(scriptPath, quickScript);
      chmodSync(scriptPath, 0o755);
    },
  },
  {
    name: "a script that is a link to nothing",
    code: "script_missing",
    cure: /or is a link to nothing\. Copy examples/,
    make({ repoPath, scriptPath }) {
      mkdirSync(repoPath);
      symlinkSync("scripts/deploy.sh", scriptPath);
    },
    repair(place) {
      mkdirSync(join(place.repoPath, "scripts"));
      writeScript(join(place.repoPath, "scripts/deploy.sh"), quickScript);
    },
  },
  {
    name: "a directory in place of the script",
    code: "script_missing",
    cure: /is no file\. Copy examples/,
    make: ({ scriptPath }) => void mkdirSync(scriptPath, { recursive: true }),
    repair({ scriptPath }) {
      rmSync(scriptPath, { recursive: true });
      writeScript(scriptPath, quickScript);
    },
  },
  {
    name: "a script that is not executable",
    code: "script_not_executable",
    cure: /git update-index --chmod=\+x deploy\.sh, commit and push; here: (chmod \+x \S+)$/,
    make(place) {
      makeRepository(place);
      chmodSync(place.scriptPath, 0o644);
    },
    repair: runInShell,
  },
  {
    name: "a script that may be executed but not read",
    code: "script_not_readable",
    cure: /Run: (chmod a\+rx \S+)$/,
    isUnprivileged: true,
    make(place) {
      makeRepository(place);
      chmodSync(place.scriptPath, 0o711);
    },
    repair: runInShell,
  },
  {
    name: "a script without a first line that names its interpreter",
    code: "script_without_interpreter",
    cure: /Make its first line: (#!\S+ \S+)$/,
    make: (place) => makeRepository(place, "echo hello\n"),
    repair: ({ scriptPath }, [, line]) => void writeScript(scriptPath, `${line}\necho hello\n`),
  },
  {
    name: "an empty script",
    code: "script_without_interpreter",
    cure: /Make its first line: (#!\S+ \S+)$/,
    make: (place) => makeRepository(place, ""),
    repair: ({ scriptPath }, [, line]) => void writeScript(scriptPath, `${line}\n`),
  },
  {
    name: "a script whose first line names nothing",
    code: "script_without_interpreter",
    cure: /Make its first line: (#!\S+ \S+)$/,
    make: (place) => makeRepository(place, "#! \necho hello\n"),
    repair: ({ scriptPath }, [, line]) => void writeScript(scriptPath, `${line}\necho hello\n`),
  },
  {
    name: "a script with Windows line endings",
    code: "script_crlf",
    cure: /Run: (sed -i 's\/\\r\$\/\/' \S+), add the line "deploy\.sh text eol=lf" to \.gitattributes/,
    make: (place) => makeRepository(place, quickScript.replaceAll("\n", "\r\n")),
    repair: runInShell,
  },
  {
    name: "a script whose interpreter does not exist",
    code: "interpreter_missing",
    cure: /Install it, or name another program there\.$/,
    make: (place) => makeRepository(place, "#!/opt/none/bash\necho hello\n"),
    repair: ({ scriptPath }) => void writeScript(scriptPath, quickScript),
  },
  {
    name: "a script whose interpreter env does not find",
    code: "interpreter_missing",
    cure: /names none-such, which is not in the PATH\. Install it, or name another/,
    make: (place) => makeRepository(place, "#!/usr/bin/env -S none-such -e\necho hello\n"),
    repair: ({ scriptPath }) => void writeScript(scriptPath, quickScript),
  },
  {
    name: "a script whose interpreter is not executable",
    code: "interpreter_missing",
    cure: /cannot be run\. Install it, or name another program there\.$/,
    make(place) {
      writeFileSync(join(place.besidePath, "interpreter"), "");
      makeRepository(place, `#!${join(place.besidePath, "interpreter")}\n`);
    },
    repair: ({ scriptPath }) => void writeScript(scriptPath, quickScript),
  },
];
