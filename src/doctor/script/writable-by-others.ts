import { join } from "node:path";
import { type Check, judge, problem } from "../check.ts";
import { quote } from "../quote.ts";
import { statOf } from "../stat.ts";

/** Who can change the script, or swap it, runs what they like with the rights of the service. */
export const writableByOthersCheck: Check = {
  id: "writable-by-others",
  group: "Script",
  subject: "not everybody on this machine can change what is run",
  look({ repoPath }) {
    const open = [repoPath, join(repoPath, "deploy.sh"), join(repoPath, ".git")].filter(
      (path) => ((statOf(path)?.mode ?? 0) & 0o002) !== 0,
    );
    const text = `Every user of this machine can write to ${open.join(" and ")}, and so decide what is run.`;
    const command = `chmod o-w ${open.map(quote).join(" ")}`;
    return judge(open.length > 0 ? [problem(text, { command })] : [], "only their owner and group can");
  },
};
