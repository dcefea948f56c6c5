import { join } from "node:path";
import type { NewImages } from "#deployments/watch-images";
import { runCommand } from "#platform/run-command";
import { printable } from "#platform/terminal";
import { pinnedImage } from "#rollout/report";
import { binDirectory, type ProjectScript, runSecretCommands } from "./script.ts";

/** A registry gets a minute, beside compose and the engine. */
const timeoutMs = 120_000;
const longestDetail = 1_000;

/**
 * Reads which images of a project its registries have now, other than those that run. They are asked in a process of the owner of
 * the repository, with the owner's logins.
 */
export async function readNewImages(script: ProjectScript, signal: AbortSignal): Promise<NewImages> {
  const secrets = await runSecretCommands(script, signal);
  if (secrets.kind !== "printed")
    return { kind: "fault", detail: secrets.kind === "refused" ? secrets.problem.detail : secrets.reason };
  const { repoPath, user, environment: env, redactor } = script.withSecrets(secrets.values);
  const argv = [join(binDirectory, "hotpush"), "rollout", "--list-new-images"] as const;
  const ending = await runCommand({ argv, cwd: repoPath, env, user, timeoutMs, signal });
  if (ending.kind !== "exited")
    return { kind: "fault", detail: `The registries did not answer within ${timeoutMs / 1_000} s.` };
  const lines = ending.output.split("\n");
  if (ending.code === 0) return { kind: "images", images: lines.filter((line) => pinnedImage.test(line)) };
  const said = ending.lastLines.join(" ").replace(/^hotpush: /, "");
  return { kind: "fault", detail: printable(redactor().text(said), longestDetail) };
}
