import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { git, makePlace, probe, runInShell } from "../../harness/doctor.ts";
import { type BrokenCase, runCommand, testBroken } from "../../harness/doctor-cases.ts";
import { becomeNobody } from "../../harness/nobody.ts";
import { needs } from "../../harness/requirements.ts";
import { quickScript } from "../../harness/service.ts";
import { writeScript } from "../../harness/temporary.ts";
import { brokenScripts } from "../../runner/script-set-ups.ts";

/** A test cannot run their command: a program that does not exist cannot be installed. */
const notRunnable = ["a script whose interpreter env does not find"];

/** The broken scripts of test/runner, each fixed here by the command of the report. */
const ways: readonly BrokenCase[] = brokenScripts.map((setUp) => ({
  name: setUp.name,
  check: "deploy-script",
  says: /./,
  options: setUp.isUnprivileged ? needs("root", "otherUser") : {},
  ...(setUp.isUnprivileged ? { run: { wrapper: becomeNobody } } : {}),
  breakIt(place) {
    const besidePath = join(place.root, "beside");
    mkdirSync(besidePath);
    rmSync(place.repoPath, { recursive: true });
    setUp.make({ ...place, besidePath });
    writeFileSync(place.envFile, `REPO_PATH=${place.repoPath}\nWEBHOOK_SECRET=${"s".repeat(32)}\n`);
    if (setUp.isUnprivileged) openTo(place.root, place.envFile);
    else git(place, "init", "--quiet");
  },
  ...(notRunnable.includes(setUp.name)
    ? { fix: ({ scriptPath }) => void writeScript(scriptPath, quickScript) }
    : {
        async fix(place, fault) {
          await runCommand(place, fault);
          // An interpreter that is executable now still has to be a program.
          if (setUp.code === "interpreter_not_executable") assert.match(fault.command ?? "", /^chmod a\+rx /);
        },
      }),
}));

function openTo(root: string, envFile: string): void {
  for (const path of [join(root, ".."), root, join(root, "app"), join(root, "tmp"), join(root, "home")]) {
    chmodSync(path, 0o777);
  }
  chmodSync(envFile, 0o644);
}

testBroken(ways);

testBroken([
  {
    name: "a directory for logs that all may write to",
    check: "deploy-script",
    says: /for the log of deploy\.sh, is not a directory to which only this user/,
    breakIt({ temporaryPath }) {
      const path = join(temporaryPath, `hotpush-${process.getuid?.()}`);
      mkdirSync(path);
      chmodSync(path, 0o777);
    },
  },
  {
    name: "a temporary directory that is a file",
    check: "deploy-script",
    says: /for the log of deploy\.sh cannot be created/,
    breakIt({ temporaryPath }) {
      rmSync(temporaryPath, { recursive: true });
      writeFileSync(temporaryPath, "");
    },
  },
  {
    name: "the execute bit is only here",
    check: "committed-script",
    says: /without its execute bit, so the next pull removes it here too/,
    breakIt: (place) => void git(place, "update-index", "--chmod=-x", "deploy.sh"),
  },
  {
    name: "the script is not in git",
    check: "committed-script",
    severity: "warning",
    says: /^deploy\.sh is not in git/,
    breakIt: (place) => void git(place, "rm", "--quiet", "--cached", "deploy.sh"),
  },
  {
    name: "all may write to the script",
    check: "writable-by-others",
    says: /^Every user of this machine can write to \S+deploy\.sh, and so/,
    breakIt: ({ scriptPath }) => chmodSync(scriptPath, 0o777),
  },
  {
    name: "all may write to the repository",
    check: "writable-by-others",
    says: /^Every user of this machine can write to \S+app and \S+\.git, and so/,
    breakIt({ repoPath }) {
      for (const path of [repoPath, join(repoPath, ".git")]) chmodSync(path, 0o777);
    },
  },
]);

test("tools: a missing program is found with its package, and fixed by installing it", async (t) => {
  const place = makePlace(t);
  const bin = join(place.root, "bin");
  mkdirSync(bin);
  for (const program of ["git", "mkfifo"]) link(program);
  const run = { env: { PATH: bin } };
  const found = await probe(place, "tools", run);
  assert.deepEqual(
    found.faults.map(({ text, command }) => [text.split(" ")[0], command]),
    [["flock", "apt-get install -y util-linux"]],
  );
  // In place of apt-get, which would find it installed and do nothing: what it is asked for comes into this PATH.
  const apt = `#!/bin/sh\n[ "$*" = "install -y util-linux" ] && ln -s "$(command -v flock)" ${bin}/flock\n`;
  writeScript(join(place.root, "apt-get"), apt);
  const path = [place.root, process.env.PATH].join(delimiter);
  const ended = await runInShell(place, found.faults[0]?.command ?? "false", { PATH: path });
  assert.equal(ended.exitCode, 0, ended.stderr);
  assert.equal((await probe(place, "tools", run)).outcome, "ok");

  function link(program: string): void {
    const from = (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, program));
    symlinkSync(from.find((path) => existsSync(path)) ?? "", join(bin, program));
  }
});
