import { type StdioOptions, spawn } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hostToken, startFakeGitHost } from "../harness/fake-git-host.ts";
import { launcher, noServer } from "../harness/hotpush.ts";
import { git } from "../harness/repository.ts";
import { clientConfig, makeKey, startSshServer } from "../harness/sshd.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { type Answer, answer, type CleanServer, type Typed } from "./clean-server.ts";

const root = join(import.meta.dirname, "../..");

/** A git host with a real sshd and an API, which a clean server reaches at the address of this machine. */
export type LabGitHost = Awaited<ReturnType<typeof startLabGitHost>>;

/** @param server it is the one that the host is for */
export async function startLabGitHost(scope: Scope, server: CleanServer) {
  const directory = temporaryDirectory(scope);
  const address = server.address.replace(/\d+$/, (last) => String(Number(last) - 1));
  const sshd = await startSshServer(scope, join(directory, "ssh"), address);
  writeFileSync(sshd.authorizedKeys, "");
  const api = await startFakeGitHost(scope, "gitea", address);
  const bare = join(directory, "octo/shop.git");
  const developer = join(directory, "developer");
  const upload = `git -c safe.directory=* upload-pack ${bare}`;
  // A key that is added reads this repository, and does nothing else.
  const authorize = () => {
    const lines = api.keys.map(({ key }) => `restrict,command="${upload}" ${key}\n`);
    writeFileSync(sshd.authorizedKeys, lines.join(""), { mode: 0o600 });
  };
  api.onDone = ({ operation }) => {
    if (operation.endsWith("keys") || operation.includes("keys/")) authorize();
  };
  /** Lets a key read the repository, as a person does in the host's form. */
  const addKey = (key: string) => {
    api.keys.push({ id: "7", title: "by hand", key, isReadOnly: true });
    authorize();
  };
  mkdirSync(dirname(bare), { recursive: true });
  git("/", "init", "--quiet", "--bare", "--initial-branch=main", bare);
  cpSync(join(root, "examples/compose/app"), join(developer, "app"), { recursive: true });
  const compose = `services:\n  web:\n    build: app\n    ports: ["8080:8080"]\n`;
  writeFileSync(join(developer, "compose.yaml"), compose);
  git(developer, "init", "--quiet", "--initial-branch=main");
  git(developer, "remote", "add", "origin", bare);
  /** Commits a version of the app, and pushes it to the branch. @returns the commit */
  const push = (version: number) => {
    const file = join(developer, "app/server.js");
    writeFileSync(file, readFileSync(file, "utf8").replace(/version \d+/, `version ${version}`));
    git(developer, "add", "--all");
    git(developer, "commit", "--quiet", "--allow-empty", "--message", `Version ${version}`);
    git(developer, "push", "--quiet", "origin", "main");
    return git(developer, "rev-parse", "HEAD");
  };
  push(1);
  return { api, sshd, address, remote: `ssh://root@${address}:${sshd.port}${bare}`, addKey, push };
}

/** A person's own machine: its home has a key of ssh, and it knows some hosts. */
export async function makeLaptop(scope: Scope, names: Readonly<Record<string, string>> = {}) {
  const home = temporaryDirectory(scope);
  const at = (name: string) => join(home, name);
  makeKey(at("id_ed25519"));
  await writeFile(at("ssh_config"), clientConfig(at("id_ed25519"), at("known_hosts")));
  await writeFile(at("known_hosts"), "");
  const lines = Object.entries(names).map(([name, address]) => `${address} ${name}\n`);
  await writeFile(at("hosts"), `127.0.0.1 localhost\n${lines.join("")}`);
  await mkdir(at("bin"));
  writeScript(at("bin/ssh"), `#!/bin/sh\nexec /usr/bin/ssh -F ${at("ssh_config")} "$@"\n`);
  await writeFile(at("token"), `${hostToken}\n`, { mode: 0o600 });
  // The names are in no other file of this machine than the laptop's own.
  const inside = ["--mount", "--propagation", "private", "sh", "-c"];
  const enter = [...inside, 'mount --bind "$HOME/hosts" /etc/hosts && exec "$@"', "sh", launcher];
  const command = lines.length === 0 ? [launcher] : ["unshare", ...enter];
  const env: NodeJS.ProcessEnv = {
    PATH: `${at("bin")}:${process.env.PATH}`,
    HOME: home,
    USER: "ann",
    STATE_PATH: at("state"),
    // The machine of the tests may have a Docker that answers.
    DOCKER_HOST: "unix:///hotpush-test/docker.sock",
    ...noServer,
  };
  return {
    home,
    env,
    tokenFile: at("token"),
    knownHosts: at("known_hosts"),
    /** Lets it sign in to a server as root, and know its key. */
    async meet(server: CleanServer) {
      const key = await readFile(at("id_ed25519.pub"), "utf8");
      await mkdir(server.file("/root/.ssh"), { recursive: true, mode: 0o700 });
      await appendFile(server.file("/root/.ssh/authorized_keys"), key, { mode: 0o600 });
      await this.learn(server.address, server.file("/etc/ssh/ssh_host_ed25519_key.pub"));
    },
    /** @param file the public half of a host's key */
    async learn(host: string, file: string) {
      await appendFile(at("known_hosts"), `${host} ${await readFile(file, "utf8")}`);
    },
    /** Runs `hotpush` without a terminal. `onOutput` gets all of its output so far. */
    hotpush(args: readonly string[], onOutput?: (output: string) => void): Promise<Typed> {
      const [program = "", ...before] = command;
      const stdio: StdioOptions = ["ignore", "pipe", "pipe"];
      return answer(spawn(program, [...before, ...args], { env, cwd: home, stdio }), [], onOutput);
    },
    /** Runs it at a terminal, where a person gives the answers. */
    type(cwd: string, args: readonly string[], answers: readonly Answer[]): Promise<Typed> {
      const line = ["exec", ...[...command, ...args].map((word) => `'${word}'`)].join(" ");
      const typed = ["--quiet", "--return", "--command", line, "/dev/null"];
      return answer(spawn("script", typed, { env: { ...env, SHELL: "/bin/sh" }, cwd }), answers);
    },
  };
}

/** Cuts all connections of ssh to a server, as a network does that goes away. @returns how many there were */
export function cutConnections({ pid }: CleanServer): number {
  const own = readlinkSync(`/proc/${pid}/ns/pid`);
  const cut = readdirSync("/proc").filter((name) => {
    try {
      const isSession = /^sshd(?:-session)?: \w+/.test(readFileSync(`/proc/${name}/cmdline`, "utf8"));
      const isOurs = isSession && readlinkSync(`/proc/${name}/ns/pid`) === own;
      return isOurs && process.kill(Number(name), "SIGKILL");
    } catch {
      return false; // It has just ended.
    }
  });
  return cut.length;
}
