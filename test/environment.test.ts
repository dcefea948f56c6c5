import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { temporaryDirectory, writeScript } from "./harness/temporary.ts";

const environmentPath = join(import.meta.dirname, "harness/environment.ts");

/** The environment of a program that a test starts, if the test was started with `env`. */
function seenWith(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const print =
    'const {execFileSync}=await import("node:child_process");process.stdout.write(execFileSync("env"))';
  const script = `await import(${JSON.stringify(environmentPath)});${print}`;
  const { PATH = "", HOME = "" } = process.env;
  const options = { env: { PATH, HOME, ...env }, encoding: "utf8" } as const;
  const text = execFileSync(process.execPath, ["--input-type=module", "--eval", script], options);
  return Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => line.split(/=(.*)/s, 2)),
  );
}

test("a hotpush on the PATH is not seen, the programs beside it are", (t) => {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "hotpush"), "#!/bin/sh\nexit 99\n");
  writeScript(join(directory, "beside"), "#!/bin/sh\n");
  const { PATH = "" } = seenWith({ PATH: `${directory}:${process.env.PATH}` });
  const has = (name: string) =>
    PATH.split(":").some((one) => one === directory && existsSync(join(one, name)));
  assert.equal(has("hotpush"), false);
  assert.equal(PATH.split(":").length, (process.env.PATH ?? "").split(":").length + 1);
});

test("the programs beside an installed hotpush are still found", (t) => {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "hotpush"), "#!/bin/sh\nexit 99\n");
  writeScript(join(directory, "env"), "#!/bin/sh\necho FOUND=it\n");
  assert.equal(seenWith({ PATH: `${directory}:${process.env.PATH}` }).FOUND, "it");
});

test("settings of Hotpush, git, compose and npm on the machine are not seen", () => {
  const settings = [
    "WEBHOOK_SECRET",
    "STATE_PATH",
    "GIT_DIR",
    "COMPOSE_FILE",
    "XDG_STATE_HOME",
    "npm_package_name",
  ];
  const seen = seenWith(Object.fromEntries(settings.map((name) => [name, "/nonexistent"])));
  assert.deepEqual(
    settings.filter((name) => name in seen),
    [],
  );
});

test("the home directory, the Docker and the server's address of the machine are not seen", () => {
  const machine = { HOME: "/nonexistent/home", DOCKER_HOST: "unix:///nonexistent/docker.sock" };
  const seen = seenWith({
    ...machine,
    DOCKER_CONFIG: "/nonexistent",
    HOTPUSH_SERVER: "https://x",
    HOTPUSH_ENGINE: "swarm",
  });
  assert.ok(seen.HOME && seen.HOME !== machine.HOME);
  assert.ok(seen.DOCKER_HOST && seen.DOCKER_HOST !== machine.DOCKER_HOST);
  for (const name of ["DOCKER_CONFIG", "HOTPUSH_SERVER", "HOTPUSH_ENGINE"])
    assert.equal(seen[name], undefined);
});

test("every file that starts a program or reads the environment imports that of the tests", () => {
  const files = globSync("**/*.ts", { cwd: import.meta.dirname }).map((name) =>
    join(import.meta.dirname, name),
  );
  const concerned = files.filter((path) =>
    /^(?:import (?!type)|\} from ).*"node:child_process"|process\.env/m.test(readFileSync(path, "utf8")),
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
  const programs = ["lab/hotpush.ts", "lab/cache-service.ts", "harness/planted-machine.ts", "run.ts"];
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
