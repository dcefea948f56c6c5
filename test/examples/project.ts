import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { git, makeProject } from "../harness/repository.ts";
import { type Scope, writeScript } from "../harness/temporary.ts";

export const deployScript = fileURLToPath(new URL("../../examples/deploy.sh", import.meta.url));
export const main = "refs/heads/main";

export type Example = ReturnType<typeof makeExample>;

/** A remote, a clone to push from, and the checkout that is deployed by the example's script; `files` are beside it. */
export function makeExample(t: Scope, files: Readonly<Record<string, string>> = {}) {
  const project = makeProject(t);
  const { repoPath } = project;
  const root = dirname(repoPath);
  const logPath = join(root, "own.log");
  for (const name of ["bin", "tmp"]) mkdirSync(join(root, name));
  rmSync(join(repoPath, "deploy.sh"));
  /** Pushes these files. @returns the commit */
  const push = (more: Readonly<Record<string, string>> = {}) => project.push("A change", more);
  push({ "deploy.sh": readFileSync(deployScript, "utf8"), "page.txt": "first\n", ...files });
  git(repoPath, "pull", "--quiet");
  const env = {
    PATH: `${join(root, "bin")}:${process.env.PATH}`,
    HOME: root,
    TMPDIR: join(root, "tmp"),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    DEPLOY_RETRY_PAUSES: "0",
  };
  /** A file of the checkout, or beside it; empty if there is none. */
  const read = (name: string) => {
    const path = [join(repoPath, name), join(root, name)].find((one) => existsSync(one));
    return path === undefined ? "" : readFileSync(path, "utf8");
  };
  /** Puts an executable on the script's PATH, before everything else there. */
  const putOnPath = (name: string, script: string) => void writeScript(join(root, "bin", name), script);
  /** Runs the checkout's deploy.sh as the service does, to its end. */
  async function deploy(args: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const child = spawn(join(repoPath, "deploy.sh"), args, {
      cwd: repoPath,
      env: { ...env, REPO_PATH: repoPath, DEPLOY_LOG: logPath, ...more },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
    return { code: code as number | null, output };
  }
  const head = () => git(repoPath, "rev-parse", "HEAD");
  return {
    ...project,
    root,
    logPath,
    env,
    push,
    read,
    putOnPath,
    head,
    deploy,
    /** The same for the commit that the checkout is at, as a push to main. */
    deployHead: (more?: Readonly<Record<string, string>>) => deploy([main, head()], more),
    /** Runs it, and checks that it succeeds. @returns its output */
    async deployed(...args: Parameters<typeof deploy>) {
      const { code, output } = await deploy(...args);
      assert.equal(code, 0, output);
      return output;
    },
    /** Records the arguments of a program in the file `<name>-calls`, a line a call, before `script` runs. */
    record: (name: string, script: string) =>
      putOnPath(name, `#!/bin/bash\necho "$*" >>'${join(root, name)}-calls'\n${script}\n`),
    calls: (name: string) => read(`${name}-calls`).split("\n").filter(Boolean),
  };
}
