import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { type TestContext, type TestOptions, test } from "node:test";
import type { Fault, Finding } from "../../src/doctor/finding.ts";
import { testSecret } from "./delivery.ts";
import { type CommandResult, execute, noServer } from "./hotpush.ts";
import { freePort, listenAt } from "./listen.ts";
import { mainPath, quickScript } from "./service.ts";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

export interface DoctorCheck extends Finding {
  readonly id: string;
}

export interface DoctorOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A prefix of the command line, such as `setpriv` and its arguments. */
  readonly wrapper?: readonly string[];
  readonly directory?: string;
}

/** The variables that every process of a test on `place` gets. */
function placeEnvironment({ home, temporaryPath }: Place): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    HOME: home,
    ...noServer,
    TMPDIR: temporaryPath,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "octo",
    GIT_AUTHOR_EMAIL: "octo@example.com",
    GIT_COMMITTER_NAME: "octo",
    GIT_COMMITTER_EMAIL: "octo@example.com",
    NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/compiled"),
    // These tests use no engine of this machine.
    DOCKER_HOST: `unix://${home}/docker.sock`,
  };
}

/** A set-up without a fault: a checkout with a remote, settings, and a home of its own. */
export type Place = ReturnType<typeof makePlace>;

export function makePlace(scope: Scope, within: string = temporaryDirectory(scope)) {
  const root = join(within, "place");
  const place = {
    root,
    repoPath: join(root, "app"),
    scriptPath: join(root, "app/deploy.sh"),
    remotePath: join(root, "remote.git"),
    statePath: join(root, "state"),
    envFile: join(root, "app/.env"),
    home: join(root, "home"),
    temporaryPath: join(root, "tmp"),
  };
  mkdirSync(place.repoPath, { recursive: true });
  for (const path of [place.home, place.temporaryPath]) mkdirSync(path);
  git(place, "-C", root, "init", "--quiet", "--bare", "--initial-branch=main", place.remotePath);
  git(place, "init", "--quiet", "--initial-branch=main");
  writeScript(place.scriptPath, quickScript);
  writeFileSync(join(place.repoPath, ".gitignore"), "/.env\n");
  writeFileSync(place.envFile, settingsOf(place), { mode: 0o600 });
  git(place, "remote", "add", "origin", place.remotePath);
  git(place, "add", "--all");
  git(place, "commit", "--quiet", "--message", "Start");
  git(place, "push", "--quiet", "origin", "main");
  return place;
}

/** A port at which nothing listens, for this test only. */
const unusedPort = await freePort();

function settingsOf({ repoPath, statePath }: Place): string {
  const values = {
    WEBHOOK_SECRET: testSecret,
    WEBHOOK_PORT: unusedPort,
    WEBHOOK_HOST: "127.0.0.1",
    BRANCH: "main",
  };
  const settings = { ...values, REPO_PATH: repoPath, STATE_PATH: statePath };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** Changes settings in the place's file. */
export function setSettings({ envFile }: Place, changed: Readonly<Record<string, string>>): void {
  const lines = readFileSync(envFile, "utf8").split("\n").filter(Boolean);
  const kept = lines.filter((line) => !Object.keys(changed).includes(line.split("=")[0] ?? ""));
  const added = Object.entries(changed).map(([name, value]) => `${name}=${value}`);
  writeFileSync(envFile, `${[...kept, ...added].join("\n")}\n`);
  chmodSync(envFile, 0o600);
}

/** Runs git in the place's checkout. */
export function git(place: Place, ...args: readonly string[]): string {
  const options = { cwd: place.repoPath, env: placeEnvironment(place), encoding: "utf8" } as const;
  return execFileSync("git", args, options).trim();
}

/** Runs the real command, as a person would in the checkout. */
export function runDoctor(place: Place, options: DoctorOptions = {}): Promise<CommandResult> {
  const { args = [], env = {}, wrapper = [], directory = place.repoPath } = options;
  const [program = process.execPath, ...rest] = [...wrapper, process.execPath, mainPath, "doctor", ...args];
  return execute(program, rest, { cwd: directory, env: { ...placeEnvironment(place), ...env } });
}

/** The result of one check. */
export async function probe(place: Place, id: string, options: DoctorOptions = {}): Promise<DoctorCheck> {
  const ended = await runDoctor(place, { ...options, args: [id, "--json", ...(options.args ?? [])] });
  const report: { readonly checks: readonly DoctorCheck[] } = JSON.parse(ended.stdout || "{}");
  const [check] = report.checks;
  if (!check) throw new Error(`no check ${id}: ${ended.stderr}`);
  return check;
}

/** Runs a printed command in a shell, as a person would. */
export function runInShell(
  place: Place,
  command: string,
  env: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  const options = { cwd: place.repoPath, env: { ...placeEnvironment(place), ...env } };
  return execute("sh", ["-c", command], options);
}

/** A real fault. The check must find it, and its own commands must fix it. */
export interface BrokenCase {
  readonly name: string;
  readonly check: string;
  readonly options?: TestOptions;
  readonly severity?: Fault["severity"];
  readonly breakIt: (place: Place, t: TestContext) => unknown;
  /** Options of the doctor, the same before and after. */
  readonly run?: DoctorOptions | ((place: Place) => DoctorOptions);
  /** Applies the fix, if that needs more than running the command in a shell. */
  readonly fix?: (place: Place, fault: Fault, t: TestContext) => unknown;
}

/** Declares a test for each: the check finds the fault, and passes after its command has run. */
export function testBroken(cases: readonly BrokenCase[]): void {
  for (const broken of cases) {
    test(`${broken.check}: ${broken.name}: found and fixed`, broken.options ?? {}, async (t) => {
      const place = makePlace(t);
      await broken.breakIt(place, t);
      const run = typeof broken.run === "function" ? broken.run(place) : (broken.run ?? {});
      const found = await probe(place, broken.check, run);
      const [fault] = found.faults;
      assert.ok(fault, JSON.stringify(found));
      assert.equal(fault.severity, broken.severity ?? "problem", JSON.stringify(found));
      if (broken.fix) await broken.fix(place, fault, t);
      else for (const one of found.faults) await runCommand(place, one);
      const after = await probe(place, broken.check, run);
      assert.deepEqual([after.outcome, after.faults], ["ok", []], `after ${fault.command ?? fault.change}`);
    });
  }
}

export async function runCommand(place: Place, { command, text }: Fault): Promise<void> {
  assert.ok(command, `a command for: ${text}`);
  const ended = await runInShell(place, command);
  assert.equal(ended.code, 0, `${command}: ${ended.stderr}`);
}

/**
 * Writes a compose file, and puts a `docker` first in the PATH that prints what compose would. These tests need an old or
 * missing Docker, which a real one cannot simulate: without a version, there is no compose. test/e2e/doctor.test.ts uses the real one.
 */
export function standInForDocker(place: Place, composeVersion?: string): DoctorOptions {
  const bin = join(place.root, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(place.repoPath, "compose.yaml"), "services: {}\n");
  const version = composeVersion === undefined ? "exit 1" : `echo ${composeVersion}`;
  const script = `#!/bin/sh\ncase "$*" in\n*"compose version"*) ${version} ;;\n*config*) echo '{"name":"shop","services":{}}' ;;\n*) exit 1 ;;\nesac\n`;
  writeScript(join(bin, "docker"), script);
  return { env: { ...noServer, PATH: [bin, process.env.PATH].join(delimiter) } };
}

/** A simulated engine at the place's own socket. @returns the socket's path */
export function startEngine(scope: Scope, place: Place, apiVersion = "1.51"): Promise<string> {
  const answers: Readonly<Record<string, object>> = {
    "/version": { Version: "28.0.0", ApiVersion: apiVersion },
    "/info": { DockerRootDir: "/var/lib/docker-of-a-test" },
  };
  const server = createServer(({ url = "" }, response) => {
    response.end(JSON.stringify(answers[url] ?? []));
  });
  return listenAt(scope, server, join(place.home, "docker.sock"));
}
