import { parseDurationMs } from "../../config/duration.ts";
import type { ComposeHealthcheck, ComposeService } from "../../platform/compose/model.ts";
import { ProblemError } from "../../problems.ts";

/** Long enough for most services. Docker itself calls no container unhealthy during its start period. */
const shortestMs = 60_000;

/**
 * How long a new container may take to be healthy without a label: a minute, or as long as Docker's own health check
 * needs to call it unhealthy, plus 10 s.
 */
export function defaultHealthyTimeoutMs(healthcheck: ComposeHealthcheck | undefined): number {
  return Math.max(shortestMs, untilUnhealthyMs(healthcheck) + 10_000);
}

/** Docker's defaults: no start period, 3 retries, an interval and a time-out of 30 s. */
function untilUnhealthyMs(healthcheck: ComposeHealthcheck | undefined): number {
  if (!healthcheck || healthcheck.disable) return 0;
  const startPeriodMs = parseGoDurationMs(healthcheck.start_period ?? "0s") ?? 0;
  const intervalMs = parseGoDurationMs(healthcheck.interval ?? "30s") ?? 30_000;
  const timeoutMs = parseGoDurationMs(healthcheck.timeout ?? "30s") ?? 30_000;
  return startPeriodMs + (healthcheck.retries ?? 3) * (intervalMs + timeoutMs);
}

/**
 * Reads a label that holds a duration, such as `hotpush.healthy-timeout: 90s`.
 *
 * @returns milliseconds, or null if the service has no such label
 * @throws ProblemError `compose_invalid` unless it is a duration above zero
 */
export function durationLabelMs({ labels }: Pick<ComposeService, "labels">, label: string): number | null {
  const text = labels?.[label];
  if (text === undefined) return null;
  const ms = parseDurationMs(text);
  if (ms) return ms;
  const detail = `The label ${label} is "${text}", not a duration such as 90s.`;
  throw new ProblemError({ code: "compose_invalid", detail });
}

const unitsMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/**
 * Reads a duration as Go writes it and compose prints it: `1m30s`, `500ms`, `2h45m0.5s`.
 *
 * @returns milliseconds, or null if `text` is no such duration
 */
export function parseGoDurationMs(text: string): number | null {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join("") !== text) return null;
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (unitsMs[unit ?? ""] ?? 0), 0);
}
