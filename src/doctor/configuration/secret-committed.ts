import { runGit } from "../../platform/git.ts";
import { type Check, ok, problem, skip } from "../check.ts";
import { quote } from "../fix.ts";
import { newSecret } from "./configuration.ts";

/** Short words are in every repository. Another check reports a secret of a few letters. */
const shortestLength = 8;

/** Searches for the value itself. Git reads it from its standard input, because all users can read arguments. */
export const secretCommittedCheck: Check = {
  id: "secret-committed",
  group: "Configuration",
  subject: "the secret is in no file of the repository",
  async probe({ secret, repoPath, scriptEnv: env, settings }) {
    if (secret === null) return skip("there is no secret to search for");
    if (secret.length < shortestLength) return skip("the secret is too short to distinguish from other text");
    const search = ["grep", "--files-with-matches", "--fixed-strings", "-f", "-"];
    const endings = await Promise.all(
      ["--cached", "HEAD"].map((tree) => runGit(repoPath, [...search, tree], { env, input: `${secret}\n` })),
    );
    const searched = endings.filter((ending) => ending.kind === "exited" && ending.code <= 1);
    if (searched.length === 0) return skip("git does not work in the repository yet");
    const files = new Set(searched.flatMap((ending) => ("output" in ending ? filesIn(ending.output) : [])));
    if (files.size === 0) return ok("it is not in what is committed");
    const text = `The secret is committed in ${[...files].map(quote).join(", ")}: anyone who can read the repository can sign pushes. Make a new one and set it in the form of the git host too.`;
    return problem(text, newSecret(settings));
  },
};

function filesIn(output: string): readonly string[] {
  const lines = output.split("\n").filter(Boolean);
  return lines.map((line) => line.replace(/^HEAD:/, ""));
}
