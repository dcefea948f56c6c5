import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { githubPush, testSecret } from "./delivery.ts";
import { mainPath, serviceEnvironment, spawnNode, startedBy } from "./service.ts";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

export type Role = "all" | "front" | "run";

export type RunningRole = Awaited<ReturnType<Machine["start"]>>;

/** A server with several projects, of which nothing runs yet. */
export type Machine = ReturnType<typeof makeMachine>;

export function makeMachine(
  scope: Scope,
  directory: string = temporaryDirectory(scope),
  stateDirectory = directory,
) {
  const projectsPath = join(directory, "projects");
  const secretsPath = join(directory, "secrets");
  for (const path of [projectsPath, secretsPath]) mkdirSync(path);
  const statePathOf = (role: Role) => join(stateDirectory, role === "front" ? "front" : "run");
  const spoolPath = join(statePathOf("front"), "spool");
  const frontSocket = join(statePathOf("run"), "front.sock");
  return {
    projectsPath,
    secretsPath,
    spoolPath,
    statePathOf,
    /** Writes the file of a project; `settings` are more lines of it. @returns its path */
    addProject(name: string, repoPath: string, settings: Readonly<Record<string, string>> = {}) {
      const values = { REPO_PATH: repoPath, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0", ...settings };
      const file = join(projectsPath, `${name}.env`);
      const lines = Object.entries(values).map(([key, value]) => `${key}=${value}\n`);
      writeFileSync(file, lines.join(""));
      return file;
    },
    /** Starts a role and waits until it serves. `wrapper` is a prefix of its command line. */
    async start(role: Role, env: Readonly<Record<string, string>> = {}, wrapper: readonly string[] = []) {
      const statePath = statePathOf(role);
      const all = {
        ...serviceEnvironment(),
        STATE_PATH: statePath,
        PROJECTS_PATH: projectsPath,
        SECRETS_PATH: secretsPath,
        SPOOL_PATH: spoolPath,
        FRONT_SOCKET: frontSocket,
        ...env,
      };
      const args = role === "all" ? [mainPath] : [mainPath, role];
      const running = await startedBy(
        spawnNode(scope, args, { env: all, cwd: directory, wrapper }),
        role === "front" ? null : all.STATE_PATH,
      );
      const urlOf = (project: string) => `http://127.0.0.1:${running.port}/webhook/${project}`;
      return { ...running, urlOf, statePath };
    },
  };
}

/** A checkout whose script runs `text`. */
export function makeCheckout(scope: Scope, text = "true"): string {
  const path = temporaryDirectory(scope);
  writeScript(join(path, "deploy.sh"), `#!/bin/sh\n${text}\n`);
  return path;
}

/** Sends a push to the webhook of a project. */
export async function pushTo(service: RunningRole, project: string, delivery = githubPush()) {
  const response = await fetch(service.urlOf(project), { method: "POST", ...delivery });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

/** A script that runs until the file `go` is in its checkout. */
export const waitsForGo = "until [ -e go ] || [ ! -e deploy.sh ]; do sleep 0.05; done";

/** Starts a service with a project for each of the scripts, in one process, and waits until it answers commands. */
export async function startProjects(scope: Scope, scripts: Readonly<Record<string, string>>, env = {}) {
  const machine = makeMachine(scope);
  const paths = new Map(Object.entries(scripts).map(([name, text]) => [name, makeCheckout(scope, text)]));
  for (const [name, path] of paths) machine.addProject(name, path);
  const service = await machine.start("all", env);
  const go = (name: string) => writeFileSync(join(paths.get(name) ?? "", "go"), "");
  return { machine, service, paths, go };
}

/** The files of a server, of which nothing runs. */
export function makeServer(scope: Scope) {
  const path = temporaryDirectory(scope);
  const machine = makeMachine(scope, path, join(path, "lib"));
  const runStatePath = machine.statePathOf("run");
  mkdirSync(runStatePath, { recursive: true });
  writeFileSync(join(path, "compose.yaml"), "name: hotpush\nservices: {}\n");
  writeFileSync(join(path, ".env"), `STATE_PATH=${join(path, "lib")}\n`);
  return { ...machine, path, runStatePath, env: { SERVER_PATH: path } };
}
