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
  const note = (what: string) => `echo "${what} $(date +%s%3N)" >>${path}`;
  const text = `case " $* " in *" ls-remote "*) ${note("begin")}; sleep 0.3; ${note("end")}; exit 1 ;; esac`;
  writeScript(join(directory, "git"), `#!/bin/sh\n${text}\nPATH=\${PATH#*:} exec git "$@"\n`);
  const read = () => {
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    return lines.filter((line) => line !== "").map((line) => line.split(" "));
  };
  return {
    env: { PATH: `${directory}:${process.env.PATH}` },
    forget: () => writeFileSync(path, ""),
    begins: () => read().flatMap(([what, at]) => (what === "begin" ? [Number(at)] : [])),
    ends: () => read().filter(([what]) => what === "end").length,
    /** How many remotes were asked at the same time, at most. */
    most() {
      let now = 0;
      return Math.max(0, ...read().map(([what]) => (now += what === "begin" ? 1 : -1)));
    },
  };
}

test("the remotes of many projects are asked one after another at start, and few at a time later", async (t) => {
  const machine = makeMachine(t);
  const git = makeSlowGit(t);
  const paths = names.map(() => temporaryDirectory(t));
  const write = (settings: Readonly<Record<string, string>>) => {
    for (const [index, name] of names.entries()) machine.addProject(name, paths[index] ?? "", settings);
  };
  for (const path of paths) writeScript(join(path, "deploy.sh"), "#!/bin/sh\n");
  write({ CATCH_UP_INTERVAL: "5m" });
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
  await until("three were asked", () => git.begins().length >= 3);
  const [one = 0, , three = 0] = git.begins();
  assert.ok(three - one >= 2_000, `three in ${three - one} ms`);

  git.forget();
  // Their settings change, and each looks at once.
  write({ CATCH_UP_INTERVAL: "10m" });
  await until("all were asked", () => git.ends() >= names.length);
  assert.ok(git.most() <= 3, `${git.most()} at the same time`);
  assert.ok(git.most() >= 2, "they do not wait for each other more than they must");
});
