import { homedir, userInfo } from "node:os";
import { dirname } from "node:path";
import type { GitRemoteUrl } from "../../platform/git-remote-url.ts";
import { outputOf } from "../../platform/run-command.ts";
import type { SystemUser } from "../../platform/users.ts";
import { type CheckFinding, type Fault, ok, problem, quote, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** How the ssh that git starts would reach the remote, by its own account (`ssh -G`). */
export interface SshSettings {
  /** As known_hosts names the host: with its port if that is not 22. */
  readonly knownAs: string;
  readonly hostname: string;
  readonly port: string;
  readonly knownHostsFile: string;
  /** Private keys that it would try, whether they exist or not. */
  readonly keys: readonly string[];
}

/** Asks ssh, with the options of GIT_SSH_COMMAND; quotes in that are not understood. */
export async function readSshSettings(
  { host, user: login, port }: GitRemoteUrl,
  { scriptEnv: env, scriptUser: user }: DoctorContext,
): Promise<SshSettings> {
  const [program = "ssh", ...options] = (env.GIT_SSH_COMMAND ?? "ssh").replaceAll(/["']/g, "").split(/\s+/);
  const target = login === null ? (host ?? "") : `${login}@${host}`;
  const withPort = port === null ? [] : ["-p", String(port)];
  const output = (await outputOf([program, ...options, ...withPort, "-G", target], { env, user })) ?? "";
  const values = (name: string) =>
    output.split("\n").flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []));
  const hostname = values("hostname")[0] ?? host ?? "";
  const realPort = values("port")[0] ?? "22";
  const knownHosts = (values("userknownhostsfile")[0] ?? "").split(" ").filter(Boolean);
  return {
    hostname,
    port: realPort,
    knownAs: realPort === "22" ? hostname : `[${hostname}]:${realPort}`,
    knownHostsFile: expand(knownHosts[0] ?? "~/.ssh/known_hosts", user),
    keys: values("identityfile").map((path) => expand(path, user)),
  };
}

/** OpenSSH takes the home directory from the user database, not from HOME. */
function expand(path: string, user: SystemUser | null): string {
  return path.replace(/^~(?=\/)/, user?.home ?? homeOfUser());
}

function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    return homedir(); // A user without an entry, for example by `user: "1234"` in a compose file.
  }
}

/**
 * The service sets GIT_SSH_COMMAND so that ssh never prompts. That overrides core.sshCommand of the repository: a key or a
 * known host that only core.sshCommand names is not used.
 */
export async function overriddenSshCommand({ settings, readGit }: DoctorContext): Promise<Fault | null> {
  if (settings.env.GIT_SSH_COMMAND !== undefined) return null;
  const own = await readGit("config", "core.sshCommand");
  if (own === null) return null;
  const text =
    "The service's own GIT_SSH_COMMAND, which disables prompts, overrides core.sshCommand of the repository. Combine them:";
  return problem(text, settings.set("GIT_SSH_COMMAND", quote(`${own} -o BatchMode=yes`)));
}

/** By its key ssh recognizes the host. For an unknown key it would ask a person, but here there is none. */
export async function checkHostKey(context: DoctorContext): Promise<CheckFinding> {
  const answer = await context.remote();
  if (answer.kind === "none" || answer.kind === "unasked") return skip("there is no remote to ask");
  const { scheme, host } = answer.url;
  if (scheme !== "ssh") return skip("the remote does not use ssh");
  if (answer.kind === "refs") return ok(`${host} is known`);
  if (answer.cause !== "host-key-unknown" && answer.cause !== "host-key-changed") {
    return skip("ssh failed before it compared the key, or after: see remote");
  }
  if ((await overriddenSshCommand(context)) !== null)
    return skip("the command for ssh comes first: see remote");
  const ssh = await readSshSettings(answer.url, context);
  if (answer.cause === "host-key-changed") {
    const text = `The key of ${ssh.knownAs} has changed. If the git host has announced a new key, forget the old one; if not, somebody may intercept the connection. Compare the fingerprint that this prints:`;
    const forget = `ssh-keygen -R ${quote(ssh.knownAs)} -f ${quote(ssh.knownHostsFile)}`;
    return problem(text, `${forget} && ${learnCommand(ssh)}`);
  }
  const text = `The key of ${ssh.knownAs} is not in ${ssh.knownHostsFile}, and nobody is there to confirm it. Compare the fingerprint that this prints with the one that the git host publishes:`;
  return problem(text, learnCommand(ssh));
}

function learnCommand({ hostname, port, knownHostsFile }: SshSettings): string {
  const file = quote(knownHostsFile);
  const directory = quote(dirname(knownHostsFile));
  return `mkdir -p -m 700 ${directory} && ssh-keyscan -p ${port} ${quote(hostname)} | tee -a ${file} | ssh-keygen -lf -`;
}
