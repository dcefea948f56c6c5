import { dirname } from "node:path";
import { type Check, judge, ok, problem, skipped } from "../check.ts";
import { quote } from "../quote.ts";
import { hiddenSshCommand } from "./hidden-command.ts";
import { readSshSettings, type SshSettings } from "./ssh-settings.ts";

/** By its key ssh knows that the host is the same as before; a person is asked once, but here there is none. */
export const hostKeyCheck: Check = {
  id: "host-key",
  group: "Git",
  subject: "ssh knows the key of the git host",
  async look(scene) {
    const answer = await scene.remote();
    if (answer.kind === "none" || answer.kind === "unasked") return skipped("there is no remote to ask");
    const { scheme, host } = answer.address;
    if (scheme !== "ssh") return skipped("the remote is not reached by ssh");
    if (answer.kind === "refs") return ok(`${host} is known`);
    if (answer.cause !== "host-key-unknown" && answer.cause !== "host-key-changed") {
      return skipped("ssh did not get that far, or got further: see remote");
    }
    if ((await hiddenSshCommand(scene)) !== null)
      return skipped("the command for ssh comes first: see remote");
    const ssh = await readSshSettings(answer.address, scene.scriptEnv);
    if (answer.cause === "host-key-changed") {
      const text = `The key of ${ssh.knownAs} is another one than before. If the git host has told of a new key, forget the old one; if not, somebody may be in between. Compare the fingerprint that is printed:`;
      const forget = `ssh-keygen -R ${quote(ssh.knownAs)} -f ${quote(ssh.knownHostsFile)}`;
      return judge([problem(text, { command: `${forget} && ${learnCommand(ssh)}` })], "");
    }
    const text = `The key of ${ssh.knownAs} is not in ${ssh.knownHostsFile}, and nobody is there to say yes. Compare the fingerprint that is printed with the one that the git host publishes:`;
    return judge([problem(text, { command: learnCommand(ssh) })], "");
  },
};

function learnCommand({ hostname, port, knownHostsFile }: SshSettings): string {
  const file = quote(knownHostsFile);
  const directory = quote(dirname(knownHostsFile));
  return `mkdir -p -m 700 ${directory} && ssh-keyscan -p ${port} ${quote(hostname)} | tee -a ${file} | ssh-keygen -lf -`;
}
