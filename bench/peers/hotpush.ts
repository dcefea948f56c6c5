import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { testSecret } from "../../test/harness/delivery.ts";
import { freePort } from "../../test/harness/listen.ts";
import { type Scope, temporaryDirectory, writeScript } from "../../test/harness/temporary.ts";
import { launch, type Receiver } from "./receiver.ts";

/** The checkout of this bench. */
export const root = join(import.meta.dirname, "../..");

export interface HotpushOptions {
  /** Another checkout, to start another version. */
  readonly root?: string;
  /** The text of deploy.sh. */
  readonly script?: string;
  readonly statePath?: string;
  /** Flags of Node in addition to those of `npm start`. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The cache of compiled code that `npm start` has warmed after its first start. */
export const compileCache = compileCacheOf(root);

/** Starts the real service as `npm start` does. */
export async function startHotpush(scope: Scope, options: HotpushOptions = {}): Promise<Receiver> {
  const { root: checkout = root } = options;
  const repoPath = temporaryDirectory(scope);
  const statePath = options.statePath ?? join(temporaryDirectory(scope), "state");
  mkdirSync(repoPath, { recursive: true });
  writeScript(join(repoPath, "deploy.sh"), options.script ?? "#!/bin/sh\n");
  const port = await freePort();
  return await launch(scope, {
    name: "Hotpush",
    command: [process.execPath, ...startFlags(), ...(options.flags ?? []), join(checkout, "src/main.ts")],
    port,
    hookPath: "/webhook",
    readyPath: "/health",
    cwd: repoPath,
    env: {
      ...startEnvironment(),
      NODE_COMPILE_CACHE: compileCacheOf(checkout),
      WEBHOOK_PORT: String(port),
      WEBHOOK_HOST: "127.0.0.1",
      WEBHOOK_SECRET: testSecret,
      REPO_PATH: repoPath,
      STATE_PATH: statePath,
      CATCH_UP_INTERVAL: "0",
      // A script that still runs is ended, so that it does not disturb the next measurement.
      SHUTDOWN_GRACE: "0",
      LOG_LEVEL: "info",
      ...options.env,
    },
  });
}

/** A cache of compiled code as `npm ci` leaves it, before any start. */
export function compiledAhead(scope: Scope): string {
  const cache = temporaryDirectory(scope);
  const script = join(import.meta.dirname, "../../bin/compile.js");
  execFileSync(process.execPath, [...startFlags(), script], { env: { NODE_COMPILE_CACHE: cache } });
  return cache;
}

function compileCacheOf(checkout: string): string {
  return join(checkout, "node_modules/.cache/compiled");
}

/** The flags that `npm start` gives to Node. */
function startFlags(): readonly string[] {
  return startScript().match(/--\S+/g) ?? [];
}

/** The variables that `npm start` sets if they are not set: `NAME=${NAME:-value}`. */
function startEnvironment(): Record<string, string> {
  const set = startScript().matchAll(/(\w+)=\$\{\1:-([^}]+)\}/g);
  return Object.fromEntries(Array.from(set, ([, name = "", value = ""]) => [name, value]));
}

function startScript(): string {
  const text = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");
  const { scripts } = JSON.parse(text) as { readonly scripts: { readonly start: string } };
  return scripts.start;
}
