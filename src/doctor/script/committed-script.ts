import { join } from "node:path";
import { type Check, judge, ok, problem, skipped, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { runProgram } from "../run-program.ts";
import { statOf } from "../stat.ts";

/** What is pulled is what was committed: a mode that was only changed here is lost with the first deployment. */
export const committedScriptCheck: Check = {
  id: "committed-script",
  group: "Script",
  subject: "deploy.sh is committed with its execute bit",
  async look({ repoPath, scriptEnv }) {
    if (!statOf(join(repoPath, "deploy.sh"))?.isFile()) return skipped("there is no deploy.sh");
    const git = ["git", "-C", repoPath] as const;
    const ran = await runProgram([...git, "ls-files", "--stage", "--", "deploy.sh"], { env: scriptEnv });
    if (ran.kind === "missing" || ran.code !== 0) return skipped("git does not work in the repository yet");
    const command = `git -C ${quote(repoPath)} add --chmod=+x deploy.sh`;
    if (ran.output === "") {
      const text =
        "deploy.sh is not in git: whoever clones the repository has no deployment. Add, commit and push it.";
      return judge([warning(text, { command })], "");
    }
    if (ran.output.startsWith("100755")) return ok("committed as executable");
    const text =
      "deploy.sh is in git without its execute bit, so the next pull takes it away here too. Then commit and push.";
    return judge([problem(text, { command })], "");
  },
};
