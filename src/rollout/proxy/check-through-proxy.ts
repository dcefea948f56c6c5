import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { type CheckLimits, check, checkLimits } from "./check.ts";

/**
 * Asks for the service as its users do, where the label `hotpush.check` says how.
 *
 * @throws ProblemError `proxy_check_failed` with the last bad answer
 */
export async function checkThroughProxy(
  { report }: Rollout,
  { name, checkUrl }: Service,
  limits: CheckLimits = checkLimits,
): Promise<void> {
  if (checkUrl === null) return;
  const ask = async () => {
    const checked = await check(checkUrl, limits);
    if (checked.kind === "good") return;
    const text = `${name} was healthy but did not answer well through the proxy at ${checkUrl} (last: ${checked.lastAnswer}).`;
    throw new ProblemError({ code: "proxy_check_failed", detail: text });
  };
  await timed(report, name, "check", ask, () => `${checkUrl} answers well`);
}
