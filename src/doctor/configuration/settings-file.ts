import { existsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { runGit } from "../../platform/git.ts";
import { type Check, ok, problem, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { gitIn, quote } from "../fix.ts";

/** Anyone who can read the file can sign pushes. */
export const settingsModeCheck: Check = {
  id: "settings-mode",
  group: "Configuration",
  subject: "no other user can read the file with the secret",
  probe(context) {
    const file = fileOf(context);
    if (file === null) return skip("there is no file with settings");
    const { mode } = statSync(file);
    const octal = (mode & 0o777).toString(8).padStart(4, "0");
    if ((mode & 0o077) === 0) return ok(`${file} has mode ${octal}`);
    const text = `${file} has mode ${octal}: other users of this machine can read or change the secret.`;
    return problem(text, { command: `chmod 600 ${quote(file)}` });
  },
};

/** Everyone who can read the repository knows a committed secret, for ever. */
export const settingsIgnoredCheck: Check = {
  id: "settings-ignored",
  group: "Configuration",
  subject: "git ignores the file with the secret",
  async probe(context) {
    const file = fileOf(context);
    if (file === null) return skip("there is no file with settings");
    const [directory, name] = [dirname(file), basename(file)];
    const git = async (...args: readonly string[]) => {
      const ending = await runGit(directory, args, { env: context.scriptEnv });
      return { isGood: ending.kind === "exited" && ending.code === 0, lines: ending.lastLines };
    };
    const inside = await git("rev-parse", "--is-inside-work-tree");
    if (inside.lines.some((line) => line.includes("dubious ownership"))) {
      return skip("git does not trust the owner of the repository yet");
    }
    if (!inside.isGood) return ok(`${file} is in no repository`);
    const ignore = `echo ${quote(`/${name}`)} >> ${quote(`${directory}/.gitignore`)}`;
    if ((await git("ls-files", "--error-unmatch", "--", name)).isGood) {
      const text = `${file} is in the repository, and so is the secret. Take it out, commit, and make a new secret: the old one stays in the history.`;
      return problem(text, {
        command: `${gitIn(directory)} rm --quiet --cached ${quote(name)} && ${ignore}`,
      });
    }
    if ((await git("check-ignore", "--quiet", "--", name)).isGood) return ok("it is ignored");
    const text = `${file} is not ignored by git: the next "git add ." publishes the secret.`;
    return warning(text, { command: ignore });
  },
};

/** The file with the settings. In a container the service does not read `.env`, but the repository still has it. */
function fileOf({ settings: { file, isFileThere }, repoPath }: DoctorContext): string | null {
  const inRepository = join(repoPath, ".env");
  return isFileThere ? file : existsSync(inRepository) ? inRepository : null;
}
