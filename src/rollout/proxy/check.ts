import { setTimeout as sleep } from "node:timers/promises";
import { sendHttp } from "../../platform/http.ts";
import { ProblemError } from "../../problems.ts";
import type { ServiceRollout } from "../context.ts";
import { timed } from "../report/report.ts";

/**
 * Requests the service as its users do, if the label `hotpush.check` has a URL.
 *
 * @throws ProblemError `proxy_check_failed` with the last bad answer
 */
export async function checkThroughProxy(
  on: Pick<ServiceRollout, "report" | "service">,
  limits: CheckLimits = checkLimits,
): Promise<void> {
  const { name, checkUrl } = on.service;
  if (checkUrl === null) return;
  const check = async () => {
    const checked = await pollUntilGood(checkUrl, limits);
    if (checked.kind === "good") return;
    const detail = `${name} was healthy but did not answer well through the proxy at ${checkUrl} (last: ${checked.lastAnswer}).`;
    throw new ProblemError({ code: "proxy_check_failed", detail });
  };
  await timed(on, "check", check, `${checkUrl} answers well`);
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface CheckLimits {
  /** Good answers in a row that make the check pass. */
  readonly wanted: number;
  /** Bad answers in a row that make it fail. */
  readonly tolerated: number;
  readonly pollMs: number;
  readonly answerMs: number;
  readonly timeoutMs: number;
}

export const checkLimits: CheckLimits = {
  wanted: 6,
  tolerated: 5,
  pollMs: 100,
  answerMs: 5_000,
  timeoutMs: 15_000,
};

/**
 * For a service that was down: nothing can be switched back, and a proxy may need seconds to see the new container.
 */
export const patientLimits: CheckLimits = { ...checkLimits, tolerated: Number.POSITIVE_INFINITY };

export type CheckResult = { readonly kind: "good" } | { readonly kind: "bad"; readonly lastAnswer: string };

/** Requests `url`, through the proxy, until it has given a few good answers in a row (2xx, redirects followed). */
export async function pollUntilGood(url: string, limits: CheckLimits = checkLimits): Promise<CheckResult> {
  const deadlineMs = performance.now() + limits.timeoutMs;
  let good = 0;
  let bad = 0;
  for (;;) {
    const answer = await ask(url, limits.answerMs);
    good = answer === null ? good + 1 : 0;
    bad = answer === null ? 0 : bad + 1;
    if (good === limits.wanted) return { kind: "good" };
    if (answer !== null && (bad >= limits.tolerated || performance.now() > deadlineMs)) {
      return { kind: "bad", lastAnswer: answer };
    }
    await sleep(limits.pollMs);
  }
}

/** Null if the answer is good, else a description of it. */
async function ask(url: string, answerMs: number): Promise<string | null> {
  try {
    const status = await finalStatus(new URL(url), AbortSignal.timeout(answerMs));
    return status >= 200 && status < 300 ? null : `status ${status}`;
  } catch (error) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
}

async function finalStatus(url: URL, signal: AbortSignal, redirectsLeft = 10): Promise<number> {
  const { status, headers } = await sendHttp(url, { signal });
  if (!redirects.has(status) || !headers.location || redirectsLeft === 0) return status;
  return finalStatus(new URL(headers.location, url), signal, redirectsLeft - 1);
}
