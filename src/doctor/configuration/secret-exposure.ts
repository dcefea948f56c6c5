import { existsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { refusesOwner, runGit } from "../../platform/git.ts";
import { hasSucceeded } from "../../platform/run-command.ts";
import { type CheckFinding, gitIn, ok, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { newSecret } from "./configuration.ts";

/** Anyone who can read the file can sign pushes. */
export function checkSettingsMode(context: DoctorContext): CheckFinding {
  const file = fileOf(context);
  if (file === null) return skip("there is no file with settings");
  const { mode } = statSync(file);
  const octal = (mode & 0o777).toString(8).padStart(4, "0");
  // The group is that of the process that receives, which needs the secret.
  const [others, advised] = context.project === null ? [0o077, "600"] : [0o037, "640"];
  if ((mode & others) === 0) return ok(`${file} has mode ${octal}`);
  const text = `${file} has mode ${octal}: other users of this machine can read or change the secret.`;
  return problem(text, `chmod ${advised} ${quote(file)}`);
}

/** Everyone who can read the repository knows a committed secret, for ever. */
export async function checkSettingsIgnored(context: DoctorContext): Promise<CheckFinding> {
  const file = fileOf(context);
  if (file === null) return skip("there is no file with settings");
  const [directory, name] = [dirname(file), basename(file)];
  // Not by the settings of the script's user, which can name programs.
  const env = { ...context.scriptEnv, ...(context.scriptUser && { GIT_CONFIG_GLOBAL: "/dev/null" }) };
  const git = (...args: readonly string[]) => runGit(directory, args, { env });
  const inside = await git("rev-parse", "--is-inside-work-tree");
  if (refusesOwner(inside)) return skip("git does not trust the owner of the repository yet");
  if (!hasSucceeded(inside)) return ok(`${file} is in no repository`);
  const ignore = `echo ${quote(`/${name}`)} >> ${quote(`${directory}/.gitignore`)}`;
  if (hasSucceeded(await git("ls-files", "--error-unmatch", "--", name))) {
    const text = `${file} is in the repository, and so is the secret. Take it out, commit, and make a new secret: the old one stays in the history.`;
    return problem(text, `${gitIn(directory)} rm --quiet --cached ${quote(name)} && ${ignore}`);
  }
  if (hasSucceeded(await git("check-ignore", "--quiet", "--", name))) return ok("it is ignored");
  const text = `${file} is not ignored by git: the next "git add ." publishes the secret.`;
  return warning(text, ignore);
}

/** The file with the settings. In a container the service does not read `.env`, but the repository still has it. */
function fileOf({ settings: { file, isFileThere }, repoPath }: DoctorContext): string | null {
  const inRepository = join(repoPath, ".env");
  return isFileThere ? file : existsSync(inRepository) ? inRepository : null;
}

/** Short words are in every repository. Another check reports a secret of a few letters. */
const shortestLength = 8;

/** Searches for the value itself. Git reads it from its standard input, because all users can read arguments. */
export async function checkSecretCommitted({
  secret,
  repoPath,
  scriptEnv: env,
  scriptUser: user,
  settings,
}: DoctorContext): Promise<CheckFinding> {
  if (secret === null) return skip("there is no secret to search for");
  if (secret.length < shortestLength) return skip("the secret is too short to distinguish from other text");
  const search = ["grep", "--files-with-matches", "--fixed-strings", "-f", "-"];
  const endings = await Promise.all(
    ["--cached", "HEAD"].map((tree) =>
      runGit(repoPath, [...search, tree], { env, user, input: `${secret}\n` }),
    ),
  );
  const searched = endings.filter((ending) => ending.kind === "exited" && ending.code <= 1);
  if (searched.length === 0) return skip("git does not work in the repository yet");
  const files = new Set(searched.flatMap((ending) => ("output" in ending ? filesIn(ending.output) : [])));
  if (files.size === 0) return ok("it is not in what is committed");
  const text = `The secret is committed in ${[...files].map(quote).join(", ")}: anyone who can read the repository can sign pushes. Make a new one and set it in the form of the git host too.`;
  return problem(text, newSecret(settings));
}

function filesIn(output: string): readonly string[] {
  const lines = output.split("\n").filter(Boolean);
  return lines.map((line) => line.replace(/^HEAD:/, ""));
}
