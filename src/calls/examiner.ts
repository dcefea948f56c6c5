import { runCommand } from "#platform/run-command";
import { type ExaminationJson, instant } from "./shapes.ts";

/** Examines projects, and keeps the last result of each. */
export interface Examiner {
  readonly look: (project: string) => ExaminationJson;
}

const freshMs = 60_000;
const timeoutMs = 120_000;

/**
 * Runs `hotpush doctor` as a program of its own: its probes need memory that the service would then keep. One runs at a time.
 *
 * @param env where the projects are, without a secret
 * @param mainPath the program
 */
export function createExaminer(env: NodeJS.ProcessEnv, mainPath: string): Examiner {
  const results = new Map<string, { readonly atMs: number; readonly report: ExaminationJson["report"] }>();
  const waiting = new Set<string>();
  let last: Promise<void> = Promise.resolve();

  async function examine(project: string): Promise<void> {
    const argv = [process.execPath, mainPath, "doctor", "--project", project, "--json"] as const;
    const ending = await runCommand({ argv, env, cwd: "/", timeoutMs });
    const report = ending.kind === "exited" ? readReport(ending.output) : null;
    results.set(project, { atMs: Date.now(), report });
    waiting.delete(project);
  }

  return {
    look(project) {
      const known = results.get(project) ?? null;
      const isFresh = known !== null && Date.now() - known.atMs < freshMs;
      if (!isFresh && !waiting.has(project)) {
        waiting.add(project);
        last = last
          .then(() => examine(project))
          .catch(() => {
            waiting.delete(project);
          });
      }
      return {
        ...{ project, isRunning: waiting.has(project) },
        ...{ examinedAt: known && instant(known.atMs), report: known?.report ?? null },
      };
    },
  };
}

function readReport(output: string): ExaminationJson["report"] {
  try {
    return JSON.parse(output) as ExaminationJson["report"];
  } catch {
    return null;
  }
}
