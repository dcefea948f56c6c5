import { dirname } from "node:path";
import { type Check, ok, problem, skip } from "../check.ts";
import { quote } from "../fix.ts";
import { overriddenSshCommand, readSshSettings, type SshSettings } from "./ssh.ts";

/** By its key ssh recognizes the host. For an unknown key it would ask a person, but here there is none. */
export const hostKeyCheck: Check = {
  id: "host-key",
  group: "Git",
  subject: "ssh knows the key of the git host",
  async probe(context) {
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
      return problem(text, { command: `${forget} && ${learnCommand(ssh)}` });
    }
    const text = `The key of ${ssh.knownAs} is not in ${ssh.knownHostsFile}, and nobody is there to confirm it. Compare the fingerprint that this prints with the one that the git host publishes:`;
    return problem(text, { command: learnCommand(ssh) });
  },
};

function learnCommand({ hostname, port, knownHostsFile }: SshSettings): string {
  const file = quote(knownHostsFile);
  const directory = quote(dirname(knownHostsFile));
  return `mkdir -p -m 700 ${directory} && ssh-keyscan -p ${port} ${quote(hostname)} | tee -a ${file} | ssh-keygen -lf -`;
}
