/**
 * The catalogue of everything that can be refused or can fail, by code. HTTP answers (RFC 9457), the log, a
 * deployment's record and docs/problems.md all use it.
 *
 * `status` is the HTTP status if the problem is an answer; `exitCode` (sysexits.h) if it ends the process.
 */
export const problems = {
  malformed_request: { status: 400, title: "The request is not well-formed HTTP" },
  invalid_encoding: { status: 400, title: "The body is not UTF-8" },
  invalid_json: { status: 400, title: "The body is not JSON" },
  signature_missing: { status: 401, title: "The request is not signed" },
  signature_invalid: { status: 401, title: "The signature does not match" },
  signature_unsupported: { status: 401, title: "The git host did not sign with HMAC-SHA256" },
  not_signed_in: { status: 401, title: "The request has no valid session or token" },
  not_allowed: { status: 403, title: "The session or token has no right to this" },
  not_found: { status: 404, title: "Nothing is served at this path" },
  method_not_allowed: { status: 405, title: "This path does not support this method" },
  request_timeout: { status: 408, title: "The request took too long to arrive" },
  not_possible: { status: 409, title: "This cannot be done as things stand" },
  payload_too_large: { status: 413, title: "The body is too large" },
  unsupported_media_type: { status: 415, title: "The body is not sent as JSON" },
  unsupported_encoding: { status: 415, title: "The body is compressed" },
  wrong_host: { status: 421, title: "The page has another address" },
  input_invalid: { status: 422, title: "The call does not take this" },
  invalid_payload: { status: 422, title: "The body is not a valid push payload" },
  too_many_requests: { status: 503, title: "This visitor has too many requests open" },
  headers_too_large: { status: 431, title: "The headers are too large" },
  internal_error: { status: 500, exitCode: 70, title: "Internal error in Hotpush" },
  storage_unavailable: { status: 503, title: "The push could not be stored" },
  overloaded: { status: 503, title: "Too many bodies are arriving at once" },
  run_unreachable: { status: 503, title: "The process that deploys does not answer" },
  unhealthy: { status: 503, title: "The service is not healthy" },

  configuration_invalid: { exitCode: 78, title: "The configuration is not valid" },
  address_unavailable: { exitCode: 78, title: "The service cannot listen on its address" },
  state_unusable: { exitCode: 78, title: "The state directory cannot be used" },
  tool_missing: { exitCode: 78, title: "A program that Hotpush needs is not installed" },
  system_unsupported: { exitCode: 78, title: "Hotpush does not deploy on this operating system" },

  repository_missing: { title: "The repository directory does not exist" },
  repository_not_accessible: { title: "The repository directory cannot be entered" },
  repository_dubious_ownership: { title: "The repository belongs to another user" },
  owner_unusable: { title: "The deploy script cannot run as the owner of the repository" },
  branch_not_selected: { title: "The branch is not the one that BRANCH names" },
  signers_unusable: { title: "The signature of the commit could not be verified" },
  fetch_failed: { title: "The branch could not be fetched" },
  branch_diverged: { title: "The branch does not descend from what was deployed last" },
  commit_unsigned: { title: "The commit is not signed" },
  signer_unknown: { title: "The commit is signed by a key that is not allowed" },
  signer_expired: { title: "The commit is signed by a key that is not valid" },
  signer_revoked: { title: "The commit is signed by a key that was revoked" },
  signature_bad: { title: "The signature of the commit does not match it" },
  script_missing: { title: "There is no deploy script" },
  script_not_executable: { title: "The deploy script is not executable" },
  script_not_readable: { title: "The deploy script cannot be read" },
  script_without_interpreter: { title: "The deploy script does not name its interpreter" },
  script_crlf: { title: "The deploy script has Windows line endings" },
  interpreter_missing: { title: "The interpreter of the deploy script is not installed" },
  temporary_directory_unusable: { title: "The directory for the deploy script's own log cannot be used" },

  secret_unavailable: { title: "A command did not print its secret" },
  script_failed: { title: "The deploy script failed" },
  other_commit_deployed: { title: "The deploy script deployed another commit" },
  script_killed: { title: "The deploy script was killed" },
  deployment_timed_out: { title: "The deployment took too long" },
  deployment_interrupted: { title: "The deployment was interrupted" },
  deployment_gave_up: { title: "The deployment was interrupted too often" },

  docker_unreachable: { title: "The Docker engine does not answer" },
  docker_refused: { title: "The Docker engine refused a request" },
  compose_missing: { title: "The docker program or docker compose is not installed" },
  network_changed: { title: "A network of the project must be recreated" },
  volume_changed: { title: "A volume of the project must be recreated" },
  compose_invalid: { title: "The compose file is not valid" },
  project_name_taken: { title: "Another checkout has containers under the project's name" },
  override_lost: { title: "The compose files no longer have what Hotpush added for Caddy" },
  service_unknown: { title: "There is no such service in the compose file" },
  repository_not_mounted: { title: "The repository is not at its path on the host" },
  rollout_locked: { title: "Another roll-out is still running" },
  live_file_not_writable: { title: "The live files cannot be written" },
  live_file_shared: { title: "A live file names a container of another project" },
  disk_full: { title: "There is too little free disk space" },
  image_pull_failed: { title: "An image could not be pulled" },
  build_failed: { title: "The build failed" },
  no_previous_version: { title: "There is no earlier good version to roll back to" },
  container_start_failed: { title: "The new container could not be started" },
  container_not_healthy: { title: "The new version did not become healthy" },
  proxy_check_failed: { title: "The new version did not answer through the proxy" },
  version_worse: { title: "The new version was worse than the one before" },
  version_unwanted: { title: "A roll back was requested while the new version was guarded" },
  run_once_failed: { title: "A one-shot service failed" },
  rollout_interrupted: { title: "The roll-out was interrupted" },
  image_push_failed: { title: "The image could not be pushed to the registry" },
  stack_refused: { title: "Docker refused to deploy the stack" },
} as const satisfies Record<string, CatalogueEntry>;

interface CatalogueEntry {
  readonly title: string;
  readonly status?: number;
  readonly exitCode?: number;
}

export type ProblemCode = keyof typeof problems;

/** The codes that can be an HTTP answer. */
export type HttpProblemCode = {
  [Code in ProblemCode]: (typeof problems)[Code] extends { status: number } ? Code : never;
}[ProblemCode];

/** One occurrence. `detail` says what happened, why, and what to do next. */
export interface Problem<Code extends ProblemCode = ProblemCode> {
  readonly code: Code;
  readonly detail: string;
  /** Lines to show below it, such as the end of a program's output. */
  readonly evidence?: readonly string[];
}

/** A command cannot do what was requested; `message` says why, for a person. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
}

/** A fault that ends an operation. `problem` describes it for a person, `cause` is what was thrown. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: Problem;

  constructor(problem: Problem, cause?: unknown) {
    super(problem.detail, cause === undefined ? undefined : { cause });
    this.problem = problem;
  }
}

/** For what only a server does. Commands that call the service run anywhere. @throws ProblemError unless this is Linux */
export function refuseOtherSystems(): void {
  if (process.platform === "linux") return;
  throw new ProblemError({
    code: "system_unsupported",
    detail: `This is ${process.platform}, and Hotpush deploys on Linux only. To set a server up from here: hotpush up root@203.0.113.5`,
  });
}

/** The exit code of the process for `code`: 70 (EX_SOFTWARE) if the catalogue names none. */
export function exitCodeOf(code: ProblemCode): number {
  const entry: CatalogueEntry = problems[code];
  return entry.exitCode ?? problems.internal_error.exitCode;
}
