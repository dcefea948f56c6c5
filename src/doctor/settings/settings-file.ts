import { existsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Check, judge, ok, problem, skipped, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { runProgram } from "../run-program.ts";
import type { Scene } from "../scene.ts";

/** Who can read the file can sign pushes. */
export const settingsModeCheck: Check = {
  id: "settings-mode",
  group: "Configuration",
  subject: "nobody else can read the file with the secret",
  look(scene) {
    const file = fileOf(scene);
    if (file === null) return skipped("there is no file with settings");
    const { mode } = statSync(file);
    const octal = (mode & 0o777).toString(8).padStart(4, "0");
    if ((mode & 0o077) === 0) return ok(`${file} has mode ${octal}`);
    const text = `${file} has mode ${octal}: other users of this machine can read or change the secret.`;
    return judge([problem(text, { command: `chmod 600 ${quote(file)}` })], "");
  },
};

/** A secret that is committed is known to all who can read the repository, for ever. */
export const settingsIgnoredCheck: Check = {
  id: "settings-ignored",
  group: "Configuration",
  subject: "git leaves the file with the secret alone",
  async look(scene) {
    const file = fileOf(scene);
    const { scriptEnv } = scene;
    if (file === null) return skipped("there is no file with settings");
    const git = (...args: readonly string[]) =>
      runProgram(["git", "-C", dirname(file), ...args], { env: scriptEnv });
    const inside = await git("rev-parse", "--is-inside-work-tree");
    if (inside.kind === "ended" && inside.lines.includes("dubious ownership")) {
      return skipped("git does not trust the owner of the repository yet");
    }
    if (inside.kind === "missing" || inside.code !== 0) return ok(`${file} is in no repository`);
    const [directory, name] = [quote(dirname(file)), quote(basename(file))];
    const ignore = `echo ${quote(`/${basename(file)}`)} >> ${quote(`${dirname(file)}/.gitignore`)}`;
    const tracked = await git("ls-files", "--error-unmatch", "--", basename(file));
    if (tracked.kind === "ended" && tracked.code === 0) {
      const text = `${file} is in the repository, and so is the secret. Take it out, commit, and make a new secret: the old one stays in the history.`;
      const command = `git -C ${directory} rm --quiet --cached ${name} && ${ignore}`;
      return judge([problem(text, { command })], "");
    }
    const ignored = await git("check-ignore", "--quiet", "--", basename(file));
    if (ignored.kind === "ended" && ignored.code === 0) return ok("it is ignored");
    const text = `${file} is not ignored by git: the next "git add ." publishes the secret.`;
    return judge([warning(text, { command: ignore })], "");
  },
};

/** The file with the settings; in a container it is not read by the service, but it is in the repository all the same. */
function fileOf({ settings: { file, isFileThere }, repoPath }: Scene): string | null {
  const inRepository = join(repoPath, ".env");
  return isFileThere ? file : existsSync(inRepository) ? inRepository : null;
}
