import { composeVersion } from "#platform/compose";
import { attempt, statOf } from "#platform/files";
import { runCommand } from "#platform/run-command";
import { runContainer } from "#setup/server";
import type { Fault, Finding } from "./finding.ts";

const timeoutMs = 120_000;

/** The variable with the version of compose at the prompt of the machine, for the check `compose`. */
export const machineCompose = "HOTPUSH_MACHINE_COMPOSE";

/**
 * Runs checks of a project where its scripts run: in the container of `run`, which has other files, names and programs than
 * the machine.
 *
 * @returns what they found, by their names; null if that cannot be done
 */
export async function checkInRun(project: string, checks: readonly string[], env: NodeJS.ProcessEnv) {
  const version = `${machineCompose}=${(await composeVersion({ env }, timeoutMs)) ?? ""}`;
  const doctor = ["hotpush", "doctor", "--json", "--project", project, ...checks];
  const argv = ["docker", "exec", "--env", version, runContainer, ...doctor] as const;
  const ending = await runCommand({ argv, env, timeoutMs });
  type Row = Finding & { readonly project: string | null; readonly id: string };
  const text = ending.kind === "exited" ? ending.output : "";
  const report: { readonly checks?: readonly Row[] } | null = attempt(() => JSON.parse(text), null);
  const rows = report?.checks?.filter((row) => row.project === project);
  return rows ? new Map<string, Finding>(rows.map((row) => [row.id, row])) : null;
}

/** The first of the faults found in `run` about a file that this machine has; undefined if there is none. */
export function unmountedFault(faults: readonly Fault[]): Fault | undefined {
  return faults.find(({ missing }) => missing && statOf(missing) !== null);
}
