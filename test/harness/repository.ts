import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** A real git repository in a temporary directory. */
export interface TestRepository {
  readonly directory: string;
  /** Runs git in it. @returns its output, trimmed */
  readonly git: (...args: readonly string[]) => string;
  readonly write: (path: string, text: string) => void;
  /** Commits everything. @returns the commit */
  readonly commit: (message?: string) => string;
}

/** Makes an empty one with the branch `main`; `name` is the name of its directory. */
export function makeRepository(scope: Scope, name = "shop"): TestRepository {
  const directory = join(temporaryDirectory(scope), name);
  mkdirSync(directory);
  const who = ["-c", "user.name=Mara Köhler", "-c", "user.email=mara@example.org"];
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", directory, ...who, ...args], { encoding: "utf8", stdio: "pipe" }).trim();
  git("init", "--quiet", "--initial-branch=main");
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  const commit = (message = "A change") => {
    git("add", "--all");
    git("commit", "--quiet", "--allow-empty", "--message", message);
    return git("rev-parse", "HEAD");
  };
  return { directory, git, write, commit };
}
