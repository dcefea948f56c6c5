import { runCommand } from "../platform/run-command.ts";
import { instant } from "./deployment-json.ts";

/** What `hotpush doctor` has found about a project, and whether it looks again at the moment. */
export interface ExaminationJson {
  readonly project: string;
  readonly isRunning: boolean;
  /** null: it was never examined since the service started. */
  readonly examinedAt: string | null;
  /** As `hotpush doctor --json` prints it; null: not known, or the doctor could not say. */
  readonly report: DoctorJson | null;
}

/** docs/troubleshooting.md describes it. */
export interface DoctorJson {
  readonly problems: number;
  readonly warnings: number;
  readonly passed: number;
  readonly skipped: number;
  readonly checks: readonly CheckJson[];
}

export interface CheckJson {
  readonly group: string;
  readonly subject: string;
  readonly outcome: "ok" | "skipped" | "faulty";
  readonly fact: string | null;
  readonly faults: readonly {
    readonly severity: "problem" | "warning";
    readonly text: string;
    readonly command: string | null;
    readonly change: string | null;
  }[];
}

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
  const results = new Map<string, { readonly atMs: number; readonly report: DoctorJson | null }>();
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

function readReport(output: string): DoctorJson | null {
  try {
    return JSON.parse(output) as DoctorJson;
  } catch {
    return null;
  }
}
