import assert from "node:assert/strict";
import {
  chmodSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serverFilesAt } from "../../src/config/server.ts";
import { rolloutState } from "../../src/rollout/state.ts";
import { execute } from "../harness/hotpush.ts";
import { listenAt } from "../harness/listen.ts";
import { inOwnEtc } from "../harness/mounts.ts";
import { giveTo, makeSharedMachine } from "../harness/owners.ts";
import { needs } from "../harness/requirements.ts";
import { mainPath } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";

for (const command of ["rollout", "prune"]) {
  test(
    `hotpush ${command} by root works as the owner, and follows no link of that user`,
    needs("mount", "otherUser"),
    async (t) => {
      const { machine, alice, statePath, runIt, ran } = await setUp(t, command);
      const rootFile = join(machine.root, "file");
      writeFileSync(rootFile, "of root\n", { mode: 0o600 });
      const { lockPath, versionsPath } = rolloutState(statePath, alice.repoPath);
      mkdirSync(join(statePath, "rollout"), { recursive: true });
      for (const path of [lockPath, versionsPath]) {
        symlinkSync(rootFile, path);
        lchownSync(path, alice.uid, alice.uid);
      }
      for (const path of [join(statePath, "rollout"), statePath]) giveTo(alice, path);
      assert.notEqual((await runIt()).code, 0, "the lock is a link to a file that its owner cannot open");
      assert.equal(readFileSync(rootFile, "utf8"), "of root\n");
      assert.deepEqual([statSync(rootFile).uid, statSync(rootFile).mode & 0o777], [0, 0o600]);
      for (const path of [lockPath, versionsPath]) rmSync(path);
      await runIt();
      assert.equal(statSync(lockPath).uid, alice.uid, "the state is that of the project");
      assert.deepEqual(ran(), [`${alice.uid} ${alice.home} of-alice`], "root starts nothing");
    },
  );

  test(
    `hotpush ${command} by root refuses the state of an owner if it does not find the server's files`,
    needs("mount", "otherUser"),
    async (t) => {
      const { alice, statePath, runIt } = await setUp(t, command);
      mkdirSync(statePath, { recursive: true });
      giveTo(alice, statePath);
      const { code, output } = await runIt({ SERVER_PATH: "/nonexistent" });
      assert.equal(code === 0, false, output);
      assert.match(output, /SERVER_PATH/);
      assert.deepEqual(readdirSync(statePath), []);
    },
  );
}

test(
  "hotpush rollout by root gives the secrets of a project to its owner alone",
  needs("mount", "otherUser"),
  async (t) => {
    const { machine, alice, statePath, runIt, ran } = await setUp(t, "rollout");
    const mallory = machine.addOwner("mallory", "true");
    const within = join(alice.repoPath, "data");
    mkdirSync(within);
    writeFileSync(join(within, "compose.yaml"), "services: {}\n");
    mkdirSync(statePath, { recursive: true });
    for (const path of [within, statePath]) giveTo(mallory, path);
    const { output } = await runIt({}, within);
    assert.deepEqual(ran(), [`${mallory.uid} /`], output);
  },
);

test(
  "root never runs the compose plugin of an owner: the doctor asks as that user",
  needs("mount", "otherUser"),
  async (t) => {
    const { alice, machine, runIt, ran } = await setUp(t, "doctor");
    const onMachine = await runIt();
    assert.match(onMachine.output, /Project alice/);
    assert.deepEqual(ran(), ["0 /root"], "which asks the doctor in the container of run");
    const inRun = await runIt({ SERVER_STATE_PATH: machine.serverStatePath });
    assert.deepEqual(ran(), ["0 /root", `${alice.uid} ${alice.home} of-alice`], inRun.output);
  },
);

/** A server with a project of alice, whose \`docker\` writes down who runs it. */
async function setUp(t: TestContext, command: string) {
  const machine = makeSharedMachine(t);
  const alice = machine.addOwner("alice", "true");
  const statePath = join(machine.serverStatePath, "projects/alice");
  const ranPath = join(machine.root, "ran");
  writeFileSync(ranPath, "");
  chmodSync(ranPath, 0o622);
  writeFileSync(join(alice.repoPath, "compose.yaml"), "services: {}\n");
  writeFileSync(join(machine.secretsPath, "alice.env"), "DB_PASSWORD=of-alice\n", { mode: 0o600 });
  const bin = join(machine.root, "bin");
  mkdirSync(bin);
  const networks = { own: { name: "hotpush-alice", external: true } };
  const model = JSON.stringify({ name: "alice", services: {}, networks });
  writeScript(
    join(bin, "docker"),
    `#!/bin/sh\necho "$(id -u) $HOME $DB_PASSWORD" >>${ranPath}\ncase "$*" in *version*) echo 2.40.3 ;; *) echo '${model}' ;; esac\n`,
  );
  const files = serverFilesAt(join(machine.root, "etc"));
  mkdirSync(files.path);
  writeFileSync(files.composeFile, "services: {}\n");
  writeFileSync(files.envFile, `STATE_PATH=${machine.serverStatePath}\n`);
  symlinkSync(machine.projectsPath, files.projectsPath);
  symlinkSync(machine.secretsPath, files.secretsPath);
  const socketPath = await startEngine(t, machine.root, machine.serverStatePath);
  chmodSync(socketPath, 0o666);
  const known = `echo alice:x:${alice.uid}:${alice.uid}::${alice.home}:/bin/sh >>/etc/passwd`;
  const usual = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: "/root",
    DOCKER_HOST: `unix://${socketPath}`,
    SERVER_PATH: files.path,
  };
  return {
    machine,
    alice,
    statePath,
    async runIt(env: NodeJS.ProcessEnv = {}, directory = alice.repoPath) {
      const named = command === "doctor" ? [] : ["--directory", directory];
      const argv = [process.execPath, mainPath, command, ...named];
      const [program = "", ...args] = [...inOwnEtc(t, [known]), ...argv];
      const { code, stdout, stderr } = await execute(program, args, { cwd: "/", env: { ...usual, ...env } });
      return { code, output: stdout + stderr };
    },
    ran: () => [...new Set(readFileSync(ranPath, "utf8").split(/ *\n/).filter(Boolean))],
  };
}

/** An engine with the container of `run` alone. */
function startEngine(t: TestContext, root: string, serverStatePath: string): Promise<string> {
  const container = {
    Id: "0",
    Name: "/hotpush-run-1",
    State: { Status: "exited" },
    Mounts: [],
    Config: {
      Labels: { "com.docker.compose.service": "run" },
      Env: [`SERVER_STATE_PATH=${serverStatePath}`],
    },
  };
  const server = createServer(({ url = "" }, response) => {
    if (url.startsWith("/containers/json"))
      return response.end(JSON.stringify(url.includes("working_dir") ? [] : [{ Id: "0" }]));
    return response.end(JSON.stringify(container));
  });
  return listenAt(t, server, join(root, "engine.sock"));
}
