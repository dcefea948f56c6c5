import { homedir, userInfo } from "node:os";
import { outputOf } from "../run-program.ts";
import type { RemoteAddress } from "./remote-address.ts";

/** What the ssh that git will start makes of the remote's address, by its own account (`ssh -G`). */
export interface SshSettings {
  /** As known_hosts names the host: with its port where that is not 22. */
  readonly knownAs: string;
  readonly hostname: string;
  readonly port: string;
  readonly knownHostsFile: string;
  /** Private keys that would be tried, whether they are there or not. */
  readonly keys: readonly string[];
}

/** Asks ssh itself, with the options of GIT_SSH_COMMAND; quotes in that are not understood. */
export async function readSshSettings(
  { host, user, port }: RemoteAddress,
  env: Record<string, string>,
): Promise<SshSettings> {
  const [program = "ssh", ...options] = (env.GIT_SSH_COMMAND ?? "ssh").replaceAll(/["']/g, "").split(/\s+/);
  const target = user === null ? (host ?? "") : `${user}@${host}`;
  const withPort = port === null ? [] : ["-p", String(port)];
  const output = await outputOf([program, ...options, ...withPort, "-G", target], { env });
  const values = (name: string) =>
    (output ?? "")
      .split("\n")
      .flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []));
  const hostname = values("hostname")[0] ?? host ?? "";
  const realPort = values("port")[0] ?? "22";
  const [knownHostsFile = "~/.ssh/known_hosts"] = (values("userknownhostsfile")[0] ?? "")
    .split(" ")
    .filter(Boolean);
  return {
    hostname,
    port: realPort,
    knownAs: realPort === "22" ? hostname : `[${hostname}]:${realPort}`,
    knownHostsFile: expand(knownHostsFile),
    keys: values("identityfile").map(expand),
  };
}

/** OpenSSH takes the home directory from the user database, not from HOME. */
function expand(path: string): string {
  return path.replace(/^~(?=\/)/, homeOfUser());
}

function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    return homedir(); // A user without an entry, as `user: "1234"` in a compose file gives.
  }
}
