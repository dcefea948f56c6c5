import { checkScript } from "../../runner/check-script.ts";
import { type Check, judge, problem, skipped } from "../check.ts";
import { cureOfScript } from "./script-cures.ts";

/** The same look that the service takes before each run. */
export const deployScriptCheck: Check = {
  id: "deploy-script",
  group: "Script",
  subject: "deploy.sh can be started",
  async look({ repoPath, scriptEnv }) {
    const found = await checkScript(repoPath, scriptEnv);
    if (found?.code.startsWith("repository_")) return skipped("the repository comes first");
    if (found === null) return judge([], "deploy.sh can be started");
    const text = found.detail.replace(/(?<=\.) (?:Run|Copy|Make its|Install it|Mend|Move|Name).*$/s, "");
    return judge([problem(text, cureOfScript(found, repoPath))], "");
  },
};
