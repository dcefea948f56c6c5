import "../harness/environment.ts";
import { execFile, execFileSync, spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** A project with the example script in it: a bare remote, somebody's clone, and the checkout that is deployed. */
export type Project = ReturnType<typeof describeProject>;

export const deployScript = fileURLToPath(new URL("../../examples/deploy.sh", import.meta.url));
/** The one of this machine, past whatever records its calls. */
export const realGit = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
const run = promisify(execFile);

/** Makes the repositories in a temporary directory; `files` are in the first commit, beside deploy.sh. */
export async function makeProject(t: TestContext, files: Record<string, string> = {}): Promise<Project> {
  const root = await mkdtemp(join(tmpdir(), "hotpush-example-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  const project = describeProject(root);
  await mkdir(project.bin);
  await mkdir(join(root, "tmp"));
  await git(project, root, "init", "--quiet", "--bare", "--initial-branch=main", project.remote);
  await git(project, root, "clone", "--quiet", project.remote, project.clone);
  await git(project, project.clone, "checkout", "--quiet", "-B", "main");
  await copyFile(deployScript, join(project.clone, "deploy.sh"));
  await commit(project, { "page.txt": "first\n", ...files });
  await push(project);
  await git(project, root, "clone", "--quiet", project.remote, project.checkout);
  await recordGit(project);
  return project;
}

/** Commits in the clone. Files that begin with `#!` are executable. @returns the commit's id */
export async function commit(project: Project, files: Record<string, string>): Promise<string> {
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(project.clone, name), text, { mode: text.startsWith("#!") ? 0o755 : 0o644 });
  }
  await git(project, project.clone, "add", "--all");
  await git(project, project.clone, "commit", "--quiet", "--message", "A change");
  return git(project, project.clone, "rev-parse", "HEAD");
}

export async function push(project: Project, ...options: string[]): Promise<void> {
  await git(project, project.clone, "push", "--quiet", ...options, "origin", "HEAD");
}

/** Runs the checkout's deploy.sh as the service does, to its end. */
export async function deploy(project: Project, args: readonly string[], env: Record<string, string> = {}) {
  const logPath = join(project.root, "own.log");
  const child = spawn(join(project.checkout, "deploy.sh"), args, {
    cwd: project.checkout,
    env: { ...project.env, REPO_PATH: project.checkout, DEPLOY_LOG: logPath, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  const log = await readFile(logPath, "utf8").catch(() => "");
  return { code, output: Buffer.concat(chunks).toString(), log };
}

/** The same for the commit that the checkout is at, as a push to main. */
export async function deployHead(project: Project, env: Record<string, string> = {}) {
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  return deploy(project, ["refs/heads/main", head], env);
}

/** Puts an executable on the script's PATH, before everything else there. */
export async function putOnPath(project: Project, name: string, script: string): Promise<void> {
  await writeFile(join(project.bin, name), script, { mode: 0o755 });
}

/** Records git's arguments, a line a call; `afterFetch` runs once, when the first fetch is over. */
export async function recordGit(project: Project, afterFetch = ":"): Promise<void> {
  await putOnPath(
    project,
    "git",
    `#!/bin/bash
echo "$*" >>'${project.root}/git-calls'
${realGit} "$@" || code=$?
if [[ "$*" == *" fetch "* && ! -e '${project.root}/fetched' ]]; then
  touch '${project.root}/fetched'
  { ${afterFetch}; } >&2
fi
exit "\${code:-0}"
`,
  );
}

/** @returns the recorded calls, each as a line */
export async function gitCalls(project: Project): Promise<string[]> {
  const text = await readFile(join(project.root, "git-calls"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

export async function git(project: Project, cwd: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(realGit, args, { cwd, env: project.env });
  return stdout.trim();
}

/** @returns what the checkout's page says, which is to say, which version is deployed */
export function page(project: Project): Promise<string> {
  return readFile(join(project.checkout, "page.txt"), "utf8");
}

function describeProject(root: string) {
  const bin = join(root, "bin");
  return {
    root,
    /** Comes first on the script's PATH. */
    bin,
    remote: join(root, "remote.git"),
    clone: join(root, "clone"),
    checkout: join(root, "checkout"),
    env: {
      PATH: `${bin}:${process.env.PATH}`,
      HOME: root,
      TMPDIR: join(root, "tmp"),
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
      GIT_AUTHOR_NAME: "Ada",
      GIT_AUTHOR_EMAIL: "ada@example.com",
      GIT_COMMITTER_NAME: "Ada",
      GIT_COMMITTER_EMAIL: "ada@example.com",
      DEPLOY_RETRY_PAUSES: "0",
    },
  };
}
