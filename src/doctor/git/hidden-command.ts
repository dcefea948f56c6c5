import { type Fault, problem } from "../check.ts";
import { quote } from "../quote.ts";
import { outputOf } from "../run-program.ts";
import type { Scene } from "../scene.ts";

/**
 * The service tells git to start ssh so that it never asks (GIT_SSH_COMMAND), and that hides what the repository itself
 * is set to start: a key or a known host that is only named there is not used.
 */
export async function hiddenSshCommand({ settings, repoPath, scriptEnv }: Scene): Promise<Fault | null> {
  if (settings.env.GIT_SSH_COMMAND !== undefined) return null;
  const own = await outputOf(["git", "-C", repoPath, "config", "core.sshCommand"], { env: scriptEnv });
  if (own === null) return null;
  const text =
    "The repository's core.sshCommand is hidden by the service's own GIT_SSH_COMMAND, which never asks. Make them one:";
  return problem(text, settings.set("GIT_SSH_COMMAND", quote(`${own} -o BatchMode=yes`)));
}
