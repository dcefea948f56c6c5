import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { ComposePort, ComposeService } from "../rollout/compose/compose-model.ts";
import type { Project } from "./project.ts";
import { SetupError } from "./setup-error.ts";

/** A compose project's services, as compose itself reads its files, without Hotpush's own. */
export type Services = Readonly<Record<string, SetupService>>;

export interface SetupService extends ComposeService {
  readonly ports?: readonly (ComposePort & { readonly host_ip?: string; readonly protocol?: string })[];
}

const run = promisify(execFile);

/** The first compose whose `!reset` takes a list away that another file has given. */
const leastVersion = [2, 24, 4] as const;

/**
 * Has compose read the project.
 *
 * @throws SetupError where there is no compose, it is too old, or it does not take the files
 */
export async function readServices(
  { root, composeFiles }: Project,
  env: NodeJS.ProcessEnv,
): Promise<Services> {
  await requireCompose(env);
  const files = composeFiles.flatMap((file) => ["--file", file]);
  const argv = ["compose", "--project-directory", root, ...files, "config", "--format", "json"];
  try {
    const { stdout } = await run("docker", argv, {
      cwd: root,
      env,
      timeout: 60_000,
      maxBuffer: 64 * 1024 ** 2,
    });
    const { services }: { readonly services: Services } = JSON.parse(stdout);
    return services;
  } catch (error) {
    const { stderr = String(error) } = error as { readonly stderr?: string };
    throw new SetupError(`Compose cannot read your project. It says: ${lastLine(stderr)}`);
  }
}

async function requireCompose(env: NodeJS.ProcessEnv): Promise<void> {
  const needed = leastVersion.join(".");
  try {
    const { stdout } = await run("docker", ["compose", "version", "--short"], { env, timeout: 20_000 });
    if (isAtLeast(stdout.trim().replace(/^v/, ""))) return;
    throw new SetupError(
      `Docker Compose is ${stdout.trim()} here; ${needed} or newer is needed. Install a newer one: https://docs.docker.com/compose/install/`,
    );
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(
      "This project has a compose file, but there is no docker compose here. Run this on the server; or install it: https://docs.docker.com/engine/install/",
    );
  }
}

function isAtLeast(version: string): boolean {
  const parts = version.split(/[.-]/).map(Number);
  for (const [index, least] of leastVersion.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
