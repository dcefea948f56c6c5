import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  chmodSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { rolloutState } from "../../src/rollout/lock.ts";
import { listenAt } from "../harness/listen.ts";
import { inOwnEtc } from "../harness/own-mounts.ts";
import { giveTo, makeSharedMachine } from "../harness/owners.ts";
import { needs } from "../harness/requirements.ts";
import { mainPath } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";

for (const command of ["rollout", "prune"]) {
  test(
    `hotpush ${command} by root works as the owner, and follows no link of that user`,
    needs("mount", "otherUser"),
    async (t) => {
      const machine = makeSharedMachine(t);
      const alice = machine.addOwner("alice", "true");
      const statePath = join(machine.serverStatePath, "projects/alice");
      const ranPath = join(machine.root, "ran");
      const rootFile = join(machine.root, "file");
      writeFileSync(rootFile, "of root\n", { mode: 0o600 });
      writeFileSync(ranPath, "");
      chmodSync(ranPath, 0o622);
      const { lockPath, versionsPath } = rolloutState(statePath, alice.repoPath);
      mkdirSync(join(statePath, "rollout"), { recursive: true });
      for (const path of [lockPath, versionsPath]) {
        symlinkSync(rootFile, path);
        lchownSync(path, alice.uid, alice.uid);
      }
      for (const path of [join(statePath, "rollout"), statePath]) giveTo(alice, path);
      writeFileSync(join(alice.repoPath, "compose.yaml"), "services: {}\n");
      const model = {
        name: "alice",
        services: {},
        networks: { own: { name: "hotpush-alice", external: true } },
      };
      const bin = join(machine.root, "bin");
      mkdirSync(bin);
      writeScript(
        join(bin, "docker"),
        `#!/bin/sh\necho "$(id -u) $HOME" >>${ranPath}\necho '${JSON.stringify(model)}'\n`,
      );
      const socketPath = await startEngine(t, machine.root, machine.serverStatePath);
      chmodSync(socketPath, 0o666);
      const known = `echo alice:x:${alice.uid}:${alice.uid}::${alice.home}:/bin/sh >>/etc/passwd`;
      const argv = [process.execPath, mainPath, command, "--directory", alice.repoPath];
      const env = {
        PATH: `${bin}:${process.env.PATH}`,
        HOME: "/root",
        DOCKER_HOST: `unix://${socketPath}`,
      };
      const runIt = () => run([...inOwnEtc(t, [known]), ...argv], env);
      assert.notEqual(await runIt(), 0, "the lock is a link to a file that its owner cannot open");
      assert.equal(readFileSync(rootFile, "utf8"), "of root\n");
      assert.deepEqual([statSync(rootFile).uid, statSync(rootFile).mode & 0o777], [0, 0o600]);
      for (const path of [lockPath, versionsPath]) rmSync(path);
      await runIt();
      const ran = new Set(readFileSync(ranPath, "utf8").trim().split("\n"));
      // Root asks which project it is, with docker's plugins of its own.
      assert.deepEqual([...ran], ["0 /root", `${alice.uid} ${alice.home}`]);
    },
  );
}

/** An engine with the container of `run` alone. */
function startEngine(t: TestContext, root: string, serverStatePath: string): Promise<string> {
  const container = {
    ...{ Id: "0", Name: "/hotpush-run-1", State: { Status: "exited" }, Mounts: [] },
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

function run([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd: "/", env }, (error) => resolve(error ? Number(error.code ?? -1) : 0));
  });
}
