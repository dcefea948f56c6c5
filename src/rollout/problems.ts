/** What can go wrong in a roll-out, in a prune and in a roll back: one entry a code, in the shape of the house's catalogue. */
export const rolloutProblems = {
  usage: { exitCode: 2, title: "The command line is not valid" },
  docker_unreachable: { title: "The Docker engine does not answer" },
  docker_refused: { title: "The Docker engine refused a request" },
  compose_missing: { title: "docker compose is not installed" },
  compose_invalid: { title: "The compose file is not valid" },
  repository_path: { title: "The repository's path on the host cannot be used" },
  service_unknown: { title: "There is no such service in the compose file" },
  rollout_locked: { title: "Another roll-out is still at work" },
  live_file_not_writable: { title: "The live file cannot be written" },
  disk_full: { title: "There is too little free disk space" },
  build_failed: { title: "The build failed" },
  start_failed: { title: "The new container could not be started" },
  swarm_inactive: { title: "The Docker engine is no manager of a Swarm" },
  push_failed: { title: "The image could not be pushed to the registry" },
  stack_refused: { title: "docker stack deploy failed" },
  not_healthy: { title: "The new version did not become healthy" },
  check_failed: { title: "The new version did not answer through the proxy" },
  run_once_failed: { title: "A service that runs to its end ended badly" },
  no_previous_version: { title: "There is no earlier good version to go back to" },
  interrupted: { title: "The roll-out was interrupted" },
} as const satisfies Record<string, { readonly title: string; readonly exitCode?: number }>;

export type RolloutProblemCode = keyof typeof rolloutProblems;

/** A roll-out cannot go on. `message` is a sentence for a person; `evidence` are lines to show beneath it. */
export class RolloutError extends Error {
  override readonly name = "RolloutError";
  readonly code: RolloutProblemCode;
  readonly evidence: readonly string[];

  constructor(code: RolloutProblemCode, message: string, evidence: readonly string[] = [], cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.evidence = evidence;
  }
}

/** The process's exit code for `code`: 2 for a wrong command line, else 1. */
export function rolloutExitCode(code: RolloutProblemCode): number {
  const entry: { readonly title: string; readonly exitCode?: number } = rolloutProblems[code];
  return entry.exitCode ?? 1;
}
