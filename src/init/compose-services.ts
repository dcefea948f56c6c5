import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { ComposePort, ComposeService } from "../platform/compose/model.ts";
import type { Project } from "./project.ts";
import { requireDocker } from "./require-docker.ts";
import { SetupError } from "./setup-error.ts";

/** A compose project's services, as compose itself reads its files, without Hotpush's own. */
export type Services = Readonly<Record<string, SetupService>>;

export interface SetupService extends ComposeService {
  readonly ports?: readonly (ComposePort & { readonly host_ip?: string; readonly protocol?: string })[];
}

const run = promisify(execFile);

/**
 * Has compose read the project.
 *
 * @throws SetupError where there is no compose, it or the engine is too old, or it does not take the files
 */
export async function readServices(
  { root, composeFiles }: Project,
  env: NodeJS.ProcessEnv,
): Promise<Services> {
  await requireDocker(env);
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

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
