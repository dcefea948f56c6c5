import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Files that include each other in a circle end here. */
const mostFiles = 30;

/**
 * The texts of all files of settings that git reads in a repository: its own, its user's, the system's, and what they
 * include, under whatever condition. Git itself could say it exactly, in a process of its own, which would hold up each
 * start of a script.
 */
export function readGitSettings(repoPath: string, env: Readonly<Record<string, string>>): string {
  const home = env.HOME ?? "/";
  const left = [
    ...gitDirectories(join(repoPath, ".git")).flatMap((path) => [
      join(path, "config"),
      join(path, "config.worktree"),
    ]),
    env.GIT_CONFIG_GLOBAL ?? join(home, ".gitconfig"),
    join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "git/config"),
    env.GIT_CONFIG_SYSTEM ?? "/etc/gitconfig",
  ];
  const texts: string[] = [];
  for (const path of left) {
    if (texts.length === mostFiles) break;
    const text = readIfThere(path);
    texts.push(text);
    for (const [, included = ""] of text.matchAll(/^[ \t]*path[ \t]*=[ \t]*"?([^"\n]+)/gim)) {
      left.push(resolve(dirname(path), included.trim().replace(/^~(?=\/)/, home)));
    }
  }
  return texts.join("\n");
}

/** The text of the file at `path`, or nothing where it is not there or not ours to read. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Of a further work tree, and of a submodule, `.git` is a file that names the directory. */
function gitDirectories(path: string): readonly string[] {
  const linked = /^gitdir: (.+)$/m.exec(readIfThere(path))?.[1];
  if (linked === undefined) return [path];
  const directory = resolve(dirname(path), linked);
  return [directory, resolve(directory, readIfThere(join(directory, "commondir")).trim())];
}
