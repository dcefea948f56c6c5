import assert from "node:assert/strict";
import { chmodSync, copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { composeProgram, runCompose } from "../../../src/platform/compose.ts";
import { temporaryDirectory, writeScript } from "../../harness/temporary.ts";

test("compose is run directly, with the arguments after `docker compose`", async (t) => {
  const { env } = installed(t);
  const { signal } = new AbortController();
  const target = { projectDirectory: temporaryDirectory(t), files: [] };
  const argv = ["docker", "compose", "--file", "-", "config"] as const;
  const ending = await runCompose({ env, signal, target, lockDescriptor: undefined }, argv, {
    timeoutMs: 10_000,
  });
  assert.deepEqual(ending.kind === "exited" && ending.output, "--file - config");
});

test("docker's own commands are docker's", async (t) => {
  const { env } = installed(t);
  const { signal } = new AbortController();
  const target = { projectDirectory: temporaryDirectory(t), files: [] };
  const surroundings = { env, signal, target, lockDescriptor: undefined };
  const ending = await runCompose(surroundings, ["docker", "stack", "deploy"], { timeoutMs: 10_000 });
  assert.deepEqual(ending.kind === "exited" && ending.output, "stack deploy");
});

test("the directories of docker's configuration come first, in its order", (t) => {
  const { env, directory, plugin, configure } = installed(t);
  assert.deepEqual(composeProgram(env), [plugin]);
  const [first, second] = [join(directory, "first"), join(directory, "second")];
  configure(JSON.stringify({ cliPluginsExtraDirs: [first, second] }));
  const extra = program(join(second, "docker-compose"));
  assert.deepEqual(composeProgram(env), [extra]);
});

test("without DOCKER_CONFIG it is found in the home directory", (t) => {
  const { directory, env, plugin } = installed(t);
  cpSync(join(directory, "config"), join(directory, ".docker"), { recursive: true });
  const { DOCKER_CONFIG: _, ...rest } = env;
  const atHome = plugin.replace("/config/", "/.docker/");
  assert.deepEqual(composeProgram({ ...rest, HOME: directory }), [atHome]);
});

test("a docker that is a link to docker is followed", (t) => {
  const { env, directory, plugin } = installed(t);
  mkdirSync(join(directory, "links"));
  symlinkSync(join(directory, "bin", "docker"), join(directory, "links", "docker"));
  assert.deepEqual(composeProgram({ ...env, PATH: join(directory, "links") }), [plugin]);
});

for (const [situation, change] of [
  ["there is no docker", ({ env, directory }) => ({ ...env, PATH: join(directory, "nothing") })],
  [
    "docker is a script, as podman's is",
    ({ env, directory }) => ({ ...env, PATH: dirname(script(join(directory, "scripts", "docker"))) }),
  ],
  [
    "docker is another program's link, as snap's is",
    ({ env, directory }) => {
      mkdirSync(join(directory, "snap"));
      symlinkSync("/bin/echo", join(directory, "snap", "docker"));
      return { ...env, PATH: join(directory, "snap") };
    },
  ],
  [
    "docker is not at the same place from everywhere",
    ({ env }) => ({ ...env, PATH: relative(process.cwd(), env.PATH ?? "") }),
  ],
  ["docker's configuration cannot be read", ({ configure }) => configure("{")],
  ["docker's configuration is no list of settings", ({ configure }) => configure("null")],
  ["docker's configuration names no list", ({ configure }) => configure('{"cliPluginsExtraDirs": 1}')],
  [
    "docker's configuration names a directory that is not the same from everywhere",
    ({ configure }) => configure('{"cliPluginsExtraDirs": ["plugins"]}'),
  ],
  [
    "docker's configuration names a directory as a list",
    ({ directory, configure }) => {
      program(join(directory, "extra", "docker-compose"));
      return configure(JSON.stringify({ cliPluginsExtraDirs: [[join(directory, "extra")]] }));
    },
  ],
  [
    "docker's configuration is not at the same place from everywhere",
    ({ env }) => ({ ...env, DOCKER_CONFIG: relative(process.cwd(), env.DOCKER_CONFIG ?? "") }),
  ],
  [
    "the first compose may not be run",
    ({ directory, configure }) => {
      chmodSync(program(join(directory, "extra", "docker-compose")), 0o644);
      return configure(JSON.stringify({ cliPluginsExtraDirs: [join(directory, "extra")] }));
    },
  ],
  [
    "the first compose is a script",
    ({ env, plugin }) => {
      script(plugin);
      return env;
    },
  ],
  [
    "the first compose is a directory",
    ({ directory, configure }) => {
      mkdirSync(join(directory, "extra", "docker-compose"), { recursive: true });
      return configure(JSON.stringify({ cliPluginsExtraDirs: [join(directory, "extra")] }));
    },
  ],
  [
    "a plugin of docker runs this",
    ({ env }) => ({ ...env, DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND: "docker" }),
  ],
] as readonly (readonly [string, (here: Installed) => NodeJS.ProcessEnv])[]) {
  test(`if ${situation}, docker runs compose`, (t) => {
    const env = change(installed(t));
    assert.deepEqual(composeProgram(env), ["docker", "compose"]);
  });
}

type Installed = ReturnType<typeof installed>;

/** A docker that only says what it was asked, and so does compose in its configuration's directory. */
function installed(t: TestContext) {
  const directory = temporaryDirectory(t);
  const config = join(directory, "config");
  program(join(directory, "bin", "docker"));
  const plugin = program(join(config, "cli-plugins", "docker-compose"));
  const env: NodeJS.ProcessEnv = { PATH: join(directory, "bin"), DOCKER_CONFIG: config };
  const configure = (text: string) => {
    writeFileSync(join(config, "config.json"), text);
    return env;
  };
  return { directory, env, plugin, configure };
}

function program(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync("/bin/echo", path);
  return path;
}

function script(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  return writeScript(path, "#!/bin/sh\n");
}
