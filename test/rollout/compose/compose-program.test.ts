import assert from "node:assert/strict";
import { chmodSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { composeProgram } from "../../../src/rollout/compose/compose-program.ts";
import { runCompose } from "../../../src/rollout/compose/run-compose.ts";
import { temporaryDirectory, writeScript } from "../../harness/temporary.ts";

const script = "#!/bin/sh\n";

test("compose is run by itself, without docker, with what comes after `docker compose`", async (t) => {
  const { env, plugin } = installed(t);
  writeScript(plugin, `${script}echo "by itself: $*"\n`);
  const { signal } = new AbortController();
  const target = { projectDirectory: temporaryDirectory(t), files: [] };
  const argv = ["docker", "compose", "--file", "-", "config"] as const;
  const ending = await runCompose({ env, signal, target, lockDescriptor: undefined }, argv, {
    timeoutMs: 10_000,
  });
  assert.deepEqual(ending.kind === "exited" && ending.output, "by itself: --file - config");
});

test("docker's own commands are docker's", async (t) => {
  const { env } = installed(t);
  const { signal } = new AbortController();
  const target = { projectDirectory: temporaryDirectory(t), files: [] };
  const surroundings = { env, signal, target, lockDescriptor: undefined };
  const ending = await runCompose(surroundings, ["docker", "stack", "deploy"], { timeoutMs: 10_000 });
  assert.deepEqual(ending.kind === "exited" && ending.output, "stack deploy");
});

test("the directories of docker's configuration come first, in its order", async (t) => {
  const { env, directory, plugin, configure } = installed(t);
  assert.deepEqual(await composeProgram(env), [plugin]);
  const [first, second] = [join(directory, "first"), join(directory, "second")];
  configure(JSON.stringify({ cliPluginsExtraDirs: [first, second] }));
  const extra = write(join(second, "docker-compose"));
  assert.deepEqual(await composeProgram(env), [extra]);
});

test("a docker that is a link to docker is followed", async (t) => {
  const { env, directory, plugin } = installed(t);
  mkdirSync(join(directory, "links"));
  symlinkSync(join(directory, "bin", "docker"), join(directory, "links", "docker"));
  assert.deepEqual(await composeProgram({ ...env, PATH: join(directory, "links") }), [plugin]);
});

for (const [situation, change] of [
  ["there is no docker", ({ directory }) => ({ PATH: join(directory, "nothing") })],
  [
    "docker is a script, as podman's is",
    ({ directory }) => ({ PATH: dirname(write(join(directory, "scripts", "docker"))) }),
  ],
  [
    "docker is another program's link, as snap's is",
    ({ directory }) => {
      mkdirSync(join(directory, "snap"));
      symlinkSync("/bin/echo", join(directory, "snap", "docker"));
      return { PATH: join(directory, "snap") };
    },
  ],
  ["docker's configuration cannot be read", ({ configure }) => configure("{")],
  [
    "docker's configuration names no list of directories",
    ({ configure }) => configure('{"cliPluginsExtraDirs": 1}'),
  ],
  [
    "docker's configuration names a directory from somewhere",
    ({ configure }) => configure('{"cliPluginsExtraDirs": ["plugins"]}'),
  ],
  ["docker's configuration is somewhere", () => ({ DOCKER_CONFIG: "config" })],
  [
    "compose's program may not be run",
    ({ env, plugin }) => {
      chmodSync(plugin, 0o644);
      return env;
    },
  ],
] as readonly (readonly [string, (here: Installed) => NodeJS.ProcessEnv])[]) {
  test(`where ${situation}, it is docker that runs compose`, async (t) => {
    const here = installed(t);
    const env = { ...here.env, ...change(here) };
    assert.deepEqual(await composeProgram(env), ["docker", "compose"]);
  });
}

type Installed = ReturnType<typeof installed>;

/** A docker that only says what it was asked, with compose in its configuration's directory. */
function installed(t: TestContext) {
  const directory = temporaryDirectory(t);
  const config = join(directory, "config");
  mkdirSync(join(directory, "bin"));
  copyFileSync("/bin/echo", join(directory, "bin", "docker"));
  const plugin = write(join(config, "cli-plugins", "docker-compose"));
  const env: NodeJS.ProcessEnv = { PATH: join(directory, "bin"), DOCKER_CONFIG: config };
  const configure = (text: string) => {
    writeFileSync(join(config, "config.json"), text);
    return env;
  };
  return { directory, env, plugin, configure };
}

function write(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  return writeScript(path, script);
}
