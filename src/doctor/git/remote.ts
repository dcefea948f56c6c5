import { type Check, type Fault, judge, ok, problem, skipped } from "../check.ts";
import { quote } from "../quote.ts";
import type { Scene } from "../scene.ts";
import { faultOfAccess } from "./access.ts";
import type { RemoteAnswer } from "./ask-remote.ts";
import { hiddenSshCommand } from "./hidden-command.ts";
import { faultOfNetwork } from "./network.ts";

/** Asked as the script will ask: without a terminal, with the service's keys and tokens. */
export const remoteCheck: Check = {
  id: "remote",
  group: "Git",
  subject: "the remote answers without asking for anything",
  async look(scene) {
    const answer = await scene.remote();
    switch (answer.kind) {
      case "unasked":
        return skipped("git does not work in the repository yet");
      case "none":
        return judge([withoutOrigin(answer.others, scene.repoPath)], "");
      case "refs":
        return ok(answer.address.text);
      case "failed": {
        const hidden = answer.address.scheme === "ssh" ? await hiddenSshCommand(scene) : null;
        if (hidden !== null) return judge([hidden], "");
        if (answer.cause.startsWith("host-key")) return skipped("the key of the git host comes first");
        return judge([await faultOf(answer, scene)], "");
      }
    }
  },
};

function withoutOrigin(others: readonly string[], repoPath: string): Fault {
  const text = 'The repository has no remote that is called "origin", so nothing can be pulled.';
  const git = `git -C ${quote(repoPath)} remote`;
  const [other] = others;
  if (other !== undefined) return problem(text, { command: `${git} rename ${quote(other)} origin` });
  return problem(text, { change: `${git} add origin <address of your repository>` });
}

async function faultOf(answer: Extract<RemoteAnswer, { kind: "failed" }>, scene: Scene): Promise<Fault> {
  const known = faultOfNetwork(answer, scene.repoPath) ?? (await faultOfAccess(answer, scene));
  if (known) return known;
  const said = answer.lines.trim().split("\n").at(-1) || "git gave no reason";
  return problem(`git cannot ask ${answer.address.text}: ${said}`, {
    command: `git -C ${quote(scene.repoPath)} ls-remote origin`,
  });
}
