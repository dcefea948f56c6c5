import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { git, type Place, setSettings } from "./doctor.ts";
import { freePort } from "./listen.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** A real ssh server on this machine. */
export type SshServer = Awaited<ReturnType<typeof startSshServer>>;

/** The same, and the client's files for git, instead of those of this machine's user. */
export type Sshd = Awaited<ReturnType<typeof startSshd>>;

/** Starts it, and makes it the remote, without any key or known host yet. */
export async function startSshd(scope: Scope, place: Place) {
  const directory = join(place.root, "ssh");
  const server = await startSshServer(scope, directory);
  const at = (name: string) => join(directory, name);
  const sshd = { ...server, key: at("client/id_ed25519"), knownHosts: at("client/known_hosts") };
  writeFileSync(at("ssh_config"), clientConfig(sshd.key, sshd.knownHosts));
  setSettings(place, { GIT_SSH_COMMAND: `ssh -F ${at("ssh_config")} -o BatchMode=yes` });
  git(place, "remote", "set-url", "origin", sshUrl(sshd, place.remotePath));
  return sshd;
}

/** Settings of a client that has only this key, and knows only these hosts. */
export function clientConfig(key: string, knownHosts: string): string {
  return `UserKnownHostsFile ${knownHosts}\nGlobalKnownHostsFile /dev/null\nIdentityFile ${key}\nIdentitiesOnly yes\nIdentityAgent none\n`;
}

/** The address of a repository of this machine over ssh. */
export function sshUrl({ port }: SshServer, path: string): string {
  return `ssh://${process.env.USER ?? "root"}@127.0.0.1:${port}${path}`;
}

/** Starts it at `address` with its files in a new directory, without any authorized key yet. */
export async function startSshServer(scope: Scope, directory: string, address = "127.0.0.1") {
  const port = await freePort();
  const at = (name: string) => join(directory, name);
  const sshd = { port, hostKey: at("host_key"), authorizedKeys: at("authorized_keys") };
  mkdirSync(directory);
  mkdirSync("/run/sshd", { recursive: true }); // The chroot of sshd's unprivileged process.
  makeKey(sshd.hostKey);
  const server = `Port ${port}\nListenAddress ${address}\nHostKey ${sshd.hostKey}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nAuthorizedKeysFile ${sshd.authorizedKeys}\n`;
  writeFileSync(at("sshd_config"), server);
  const child = spawn("/usr/sbin/sshd", ["-D", "-e", "-f", at("sshd_config")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  scope.after(async () => {
    const ended = once(child, "exit");
    if (child.kill("SIGTERM")) await ended;
  });
  await until("sshd listens", () => said.includes("Server listening"));
  return sshd;
}

export function makeKey(path: string): void {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path]);
}
