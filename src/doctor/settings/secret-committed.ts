import { type Check, judge, problem, skipped } from "../check.ts";
import { quote } from "../quote.ts";
import { runProgram } from "../run-program.ts";
import { newSecret } from "./config.ts";

/** Short words are in every repository; a secret of a few letters is refused or warned of elsewhere. */
const shortestLength = 8;

/** Looks for the value itself. It goes to git by its standard input: arguments can be read by all users. */
export const secretCommittedCheck: Check = {
  id: "secret-committed",
  group: "Configuration",
  subject: "the secret is in no file of the repository",
  async look({ secret, repoPath, scriptEnv, settings }) {
    if (secret === null) return skipped("there is no secret that could be looked for");
    if (secret.length < shortestLength) return skipped("the secret is too short to be told from other text");
    const search = ["grep", "--files-with-matches", "--fixed-strings", "-f", "-"] as const;
    const env = scriptEnv;
    const found = await Promise.all(
      [["--cached"], ["HEAD"]].map((where) =>
        runProgram(["git", "-C", repoPath, ...search, ...where], { env, input: `${secret}\n` }),
      ),
    );
    if (!found.some((ran) => ran.kind === "ended" && (ran.code === 0 || ran.code === 1))) {
      return skipped("git does not work in the repository yet");
    }
    const files = new Set(
      found.flatMap((ran) =>
        ran.kind === "ended" && ran.code === 0 ? ran.output.split("\n").map(withoutCommit) : [],
      ),
    );
    const text = `The secret is committed in ${[...files].map(quote).join(", ")}: all who can read the repository can sign pushes. Make a new one and set it in the form of the git host too.`;
    return judge(
      files.size > 0 ? [problem(text, newSecret(settings))] : [],
      "it is not in what is committed",
    );
  },
};

function withoutCommit(line: string): string {
  return line.replace(/^HEAD:/, "");
}
