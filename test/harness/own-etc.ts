import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { type DoctorCheck, type Place, placeEnvironment } from "./doctor.ts";
import { mainPath } from "./service.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/**
 * Runs `commands` and then the doctor in mounts of their own, where /etc is a copy: what they install, enable or add to
 * a group is gone afterwards, and the machine is as it was.
 *
 * @param wrapper what to put before the doctor's command line
 */
export function inOwnEtc(
  scope: Scope,
  place: Place,
  commands: readonly string[],
  args: readonly string[],
  wrapper: readonly string[] = [],
): DoctorCheck {
  const copy = join(temporaryDirectory(scope), "etc");
  execFileSync("cp", ["-a", "/etc", copy]);
  const script = `set -e; mount --bind ${copy} /etc; cd "$1"; shift; for command; do [ "$command" = -- ] && break; sh -c "$command" >&2; shift; done; shift; exec "$@"`;
  const doctor = [...wrapper, process.execPath, mainPath, "doctor", "--json", ...args];
  const argv = ["--mount", "sh", "-c", script, "sh", place.repoPath, ...commands, "--", ...doctor];
  try {
    return first(execFileSync("unshare", argv, { env: placeEnvironment(place), encoding: "utf8" }));
  } catch (error) {
    // Exit code 1: there is a problem.
    const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
    if (!stdout) throw new Error(stderr);
    return first(stdout);
  }
}

function first(json: string): DoctorCheck {
  const report: { readonly checks: readonly DoctorCheck[] } = JSON.parse(json);
  const [check] = report.checks;
  if (!check) throw new Error(json);
  return check;
}
