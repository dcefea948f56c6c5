import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testSecret } from "./delivery.ts";
import { makeMachine, type Role, type RunningRole } from "./roles.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** The files of a server, of which nothing runs. */
export interface TestServer {
  readonly path: string;
  /** STATE_PATH of its `run`. */
  readonly runStatePath: string;
  /** The environment in which commands find it. */
  readonly env: { readonly SERVER_PATH: string };
  /** Writes the file of a project. @returns its path */
  readonly addProject: (
    name: string,
    repoPath: string,
    settings?: Readonly<Record<string, string>>,
  ) => string;
  /** Starts a service with its projects and the state of its `run`. */
  readonly start: (role: Role) => Promise<RunningRole>;
}

export function makeServer(scope: Scope): TestServer {
  const path = temporaryDirectory(scope);
  const [projectsPath, statePath] = [join(path, "projects"), join(path, "lib")];
  const runStatePath = join(statePath, "run");
  for (const directory of [projectsPath, runStatePath]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(path, "compose.yaml"), "name: hotpush\nservices: {}\n");
  writeFileSync(join(path, ".env"), `STATE_PATH=${statePath}\n`);
  const machine = makeMachine(scope);
  return {
    ...{ path, runStatePath, env: { SERVER_PATH: path } },
    addProject(name, repoPath, settings = {}) {
      const values = { REPO_PATH: repoPath, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0", ...settings };
      const lines = Object.entries(values).map(([key, value]) => `${key}=${value}\n`);
      const file = join(projectsPath, `${name}.env`);
      writeFileSync(file, lines.join(""));
      return file;
    },
    start: (role) => machine.start(role, { PROJECTS_PATH: projectsPath, STATE_PATH: runStatePath }),
  };
}
