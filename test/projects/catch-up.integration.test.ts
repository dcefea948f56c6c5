import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { githubPush } from "../harness/delivery.ts";
import { makeMachine } from "../harness/machine.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const names = Array.from({ length: 12 }, (_, index) => `p${index}`);

/** A git whose remotes are slow. It notes when it begins and when it ends to ask one. */
function makeSlowGit(t: TestContext) {
  const directory = temporaryDirectory(t);
  const path = join(directory, "asked");
  const note = (what: string) => `echo ${what} >>${path}`;
  const text = `case " $* " in *" ls-remote "*) ${note("begin")}; sleep 0.3; ${note("end")}; exit 1 ;; esac`;
  writeScript(join(directory, "git"), `#!/bin/sh\n${text}\nPATH=\${PATH#*:} exec git "$@"\n`);
  const read = () => {
    return existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  };
  return {
    env: { PATH: `${directory}:${process.env.PATH}` },
    forget: () => writeFileSync(path, ""),
    ends: () => read().filter((what) => what === "end").length,
    /** How many remotes were asked at the same time, at most. */
    most() {
      let now = 0;
      return Math.max(0, ...read().map((what) => (now += { begin: 1, end: -1 }[what] ?? 0)));
    },
  };
}

test("the remotes of many projects are asked few at a time", async (t) => {
  const machine = makeMachine(t);
  const git = makeSlowGit(t);
  const paths = names.map(() => temporaryDirectory(t));
  for (const path of paths) writeScript(join(path, "deploy.sh"), "#!/bin/sh\n");
  for (const [index, name] of names.entries())
    machine.addProject(name, paths[index] ?? "", { CATCH_UP_INTERVAL: "5m" });
  const first = await machine.start("all", git.env);
  for (const name of names) await fetch(first.urlOf(name), { method: "POST", ...githubPush() });
  for (const index of names.keys()) await first.log.waitForEnding(index + 1);
  await first.end();
  for (const path of paths) {
    execFileSync("git", ["init", "--quiet", path]);
    execFileSync("git", ["-C", path, "remote", "add", "origin", path]);
  }

  git.forget();
  await machine.start("all", git.env);
  await until("all were asked", () => git.ends() >= names.length);
  assert.ok(git.most() <= 3, `${git.most()} at the same time`);
  assert.ok(git.most() >= 2, "they do not wait for each other more than they must");
});
