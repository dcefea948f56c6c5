import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

/** A repository that a service deploys, and its remote. */
export interface Project {
  readonly remotePath: string;
  readonly repoPath: string;
  /** Pushes an empty commit to the remote and gives its id. */
  readonly commit: () => string;
  /** Pushes a commit with this message and these files to the remote and gives its id. */
  readonly push: (message: string, files?: Readonly<Record<string, string>>) => string;
  readonly script: (text: string) => void;
}

/** A bare repository, a clone of it as REPO_PATH, and another clone to push from. */
export function makeProject(scope: Scope): Project {
  const root = temporaryDirectory(scope);
  const [remotePath, repoPath, workPath] = ["remote.git", "repository", "work"].map((name) =>
    join(root, name),
  ) as [string, string, string];
  git(root, "init", "--quiet", "--bare", "--initial-branch=main", remotePath);
  git(root, "clone", "--quiet", remotePath, workPath);
  git(workPath, "switch", "--quiet", "--orphan", "main");
  const push: Project["push"] = (message, files = {}) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(workPath, name)), { recursive: true });
      writeFileSync(join(workPath, name), text);
    }
    git(workPath, "add", "--all");
    git(workPath, "commit", "--quiet", "--allow-empty", "--message", message);
    git(workPath, "push", "--quiet", "origin", "main");
    return git(workPath, "rev-parse", "HEAD");
  };
  const commit = () => push("a change");
  commit();
  git(root, "clone", "--quiet", remotePath, repoPath);
  const script = (text: string) => void writeScript(join(repoPath, "deploy.sh"), text);
  script("#!/bin/sh\nexit 0\n");
  return { remotePath, repoPath, commit, push, script };
}

/** Runs git in `directory`, with an identity to commit with. */
export function git(directory: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  return execFileSync("git", ["-C", directory, ...identity, ...args], {
    encoding: "utf8",
    stdio: "pipe",
  }).trim();
}
