import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { deliver, githubPush } from "../harness/delivery.ts";
import { git } from "../harness/repository.ts";
import { writeScript } from "../harness/temporary.ts";
import type { TestProject } from "./project.ts";

export function remotePath({ directory }: Pick<TestProject, "directory">): string {
  return `${directory}-remote.git`;
}

/** A git remote that delivers each push as a git host does, and a clone of it. */
export type GitRemote = Awaited<ReturnType<typeof makeGitRemote>>;

/** Makes the project's directory a checkout of a new remote, whose pushes are delivered through the proxy. */
export async function makeGitRemote(project: Pick<TestProject, "directory" | "origin">) {
  const { directory, origin } = project;
  const bare = remotePath(project);
  const clone = `${directory}-clone`;
  git("/", "init", "--quiet", "--bare", "--initial-branch=main", bare);
  git(directory, "init", "--quiet", "--initial-branch=main");
  git(directory, "remote", "add", "origin", bare);
  await writeFile(join(directory, ".gitignore"), ".env\nstate\nother\n");
  commitAndPush(directory);
  git("/", "clone", "--quiet", bare, clone);
  const send = [process.execPath, import.meta.filename, origin].map((word) => `'${word}'`).join(" ");
  writeScript(join(bare, "hooks/post-receive"), `#!/bin/sh\nexec ${send}\n`);
  return {
    /** Commits a change and pushes it. */
    async push(change: (clone: string) => Promise<void>) {
      await change(clone);
      commitAndPush(clone);
    },
    async remove() {
      for (const path of [bare, clone]) await rm(path, { recursive: true, force: true });
    },
  };
}

/** Commits everything in a clone, and pushes it to main. @returns the commit */
export function commitAndPush(clone: string): string {
  git(clone, "add", "--all");
  git(clone, "commit", "--quiet", "--message", "A change");
  git(clone, "push", "--quiet", "origin", "HEAD:main");
  return git(clone, "rev-parse", "HEAD");
}

/** As a post-receive hook, it sends a signed delivery for each pushed ref, as a git host does. */
if (import.meta.main) {
  const url = process.argv[2] ?? "";
  for await (const line of createInterface({ input: process.stdin })) {
    const [before = "", after = "", ref = ""] = line.split(" ");
    const { status, json } = await deliver(url, githubPush({ ref, before, after }));
    console.log(`${ref} ${status} ${JSON.stringify(json)}`);
  }
}
