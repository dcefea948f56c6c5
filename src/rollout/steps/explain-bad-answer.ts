import type { Container } from "../../platform/docker/container.ts";
import { diagnose } from "../../platform/docker/diagnosis.ts";
import { ProblemError } from "../../problems.ts";
import type { Rollout } from "../context.ts";

/** Adds to a failed check what the container says: its log goes with it. Any other error is given back as it is. */
export async function explainBadAnswer(
  { engine }: Rollout,
  [fresh]: readonly Container[],
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof ProblemError) || error.problem.code !== "proxy_check_failed" || !fresh) return error;
  const { evidence } = (await diagnose(engine, fresh, { kind: "fell" })).problem;
  return new ProblemError({ ...error.problem, ...(evidence === undefined ? {} : { evidence }) }, error);
}
