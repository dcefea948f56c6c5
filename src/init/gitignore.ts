import { git } from "./git.ts";
import { SetupError } from "./setup-error.ts";

/**
 * Those of `names`, files in the root of a checkout, that git would take into a commit.
 *
 * @throws SetupError where one of them is in the repository already: what is secret in it would be pushed
 */
export async function findUnignored(root: string, names: readonly string[]): Promise<readonly string[]> {
  const tracked = await git(root, "ls-files", "--", ...names);
  if (tracked !== "") {
    const [first] = tracked.split("\n");
    throw new SetupError(
      `${first} is in the repository, so a secret written to it would be pushed. Take it out: git rm --cached ${first} && git commit -m "Keep ${first} out of git", and push; the file itself stays.`,
    );
  }
  const ignored = await git(root, "check-ignore", "--", ...names).catch(() => "");
  return names.filter((name) => !ignored.split("\n").includes(name));
}

/** Whether git records the execute bit of files here; some file systems have none. */
export async function hasFileModes(root: string): Promise<boolean> {
  return (await git(root, "config", "--type=bool", "core.fileMode").catch(() => "true")) !== "false";
}
