import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createCleanUp } from "./clean-up.ts";

/** The demo's directory, and the environment of every process in it. */
export interface DemoDirectory {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  /** Ends every process that was started with `env`, and removes the directory. */
  readonly cleanUp: () => void;
}

/** Makes a temporary directory. When this process exits, the directory and the processes in it are removed. */
export function makeDirectory(): DemoDirectory {
  const path = mkdtempSync(join(tmpdir(), "hotpush-demo-"));
  const home = join(path, "home");
  const temporary = join(path, "tmp");
  const cleanUp = createCleanUp(path, `TMPDIR=${temporary}`);
  mkdirSync(home);
  mkdirSync(temporary);
  return { path, env: privateEnvironment(home, temporary), cleanUp };
}

/** The user's settings do not affect the demo, and the demo does not affect them. */
function privateEnvironment(home: string, temporary: string): Record<string, string> {
  return {
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: home,
    TMPDIR: temporary,
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    // git before 2.32 does not know this one and finds no settings in the empty home.
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_AUTHOR_NAME: "Ada",
    GIT_AUTHOR_EMAIL: "ada@example.com",
    GIT_COMMITTER_NAME: "Ada",
    GIT_COMMITTER_EMAIL: "ada@example.com",
  };
}
