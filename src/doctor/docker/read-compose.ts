import { loadModel } from "../../platform/compose/ask-compose.ts";
import { versionCommand } from "../../platform/compose/commands.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import { type ComposeOptions, hasSucceeded, runCompose } from "../../platform/compose/run-compose.ts";
import { ProblemError } from "../../problems.ts";
import { chooseEngine } from "../../rollout/swarm/choose-engine.ts";
import { hasComposeFile } from "./compose-file.ts";

/** What compose says of itself and of the project in the repository. */
export type ComposeAnswer =
  | { readonly kind: "no-file" }
  | { readonly kind: "no-compose" }
  | { readonly kind: "swarm"; readonly version: string }
  | { readonly kind: "invalid"; readonly version: string; readonly lines: readonly string[] }
  | { readonly kind: "model"; readonly version: string; readonly model: ComposeModel };

const timeoutMs = 10_000;

/** Asks compose for its version and for the project in `repoPath`. Takes 10 s at most. */
export async function readCompose(repoPath: string, env: Record<string, string>): Promise<ComposeAnswer> {
  if (!hasComposeFile(repoPath, env)) return { kind: "no-file" };
  const surroundings: ComposeOptions = {
    env,
    signal: AbortSignal.timeout(timeoutMs),
    target: { projectDirectory: repoPath, files: [] },
    lockDescriptor: undefined,
  };
  const version = await readVersion(surroundings);
  if (version === null) return { kind: "no-compose" };
  try {
    if ((await chooseEngine(surroundings)) === "swarm") return { kind: "swarm", version };
    return { kind: "model", version, model: await loadModel(surroundings) };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { evidence = [] } = error.problem;
    return { kind: "invalid", version, lines: evidence.length > 0 ? evidence : [error.message] };
  }
}

async function readVersion(surroundings: ComposeOptions): Promise<string | null> {
  try {
    const ending = await runCompose(surroundings, versionCommand(), { timeoutMs });
    return ending.kind === "exited" && hasSucceeded(ending) ? ending.output.trim().replace(/^v/, "") : null;
  } catch (error) {
    if (error instanceof ProblemError) return null;
    throw error;
  }
}
