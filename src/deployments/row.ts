import { type ProblemCode, problems } from "../problems.ts";
import type { Deployment, DeploymentState, Trigger } from "./deployment.ts";
import type { Row } from "./store.ts";

/** Columns of a deployment, in the words of the schema. */
export const columns = `id, trigger, ref, before_commit, commit_id, repository, host, delivery_id, state, attempts,
  checked_out_commit, subject, author, pusher, requested_by, cancelled_by, superseded_by, exit_code, problem_code, problem_detail, created_at_ms, started_at_ms, finished_at_ms`;

/** Reads a deployment from a row; the schema's own checks vouch for the types. */
export function toDeployment(row: Row): Deployment {
  const code = row.problem_code as string | null;
  return {
    id: row.id as number,
    trigger: row.trigger as Trigger,
    ref: row.ref as string,
    before: row.before_commit as string | null,
    commit: row.commit_id as string,
    checkedOutCommit: row.checked_out_commit as string | null,
    subject: row.subject as string | null,
    author: row.author as string | null,
    pusher: row.pusher as string | null,
    requestedBy: row.requested_by as string | null,
    cancelledBy: row.cancelled_by as string | null,
    repository: row.repository as string | null,
    host: row.host as string | null,
    deliveryId: row.delivery_id as string | null,
    state: row.state as DeploymentState,
    attempts: row.attempts as number,
    supersededBy: row.superseded_by as number | null,
    exitCode: row.exit_code as number | null,
    problem: isProblemCode(code) ? { code, detail: row.problem_detail as string } : null,
    createdAtMs: row.created_at_ms as number,
    startedAtMs: row.started_at_ms as number | null,
    finishedAtMs: row.finished_at_ms as number | null,
  };
}

function isProblemCode(code: string | null): code is ProblemCode {
  return code !== null && Object.hasOwn(problems, code);
}
