import { parseDurationMs } from "../config/duration.ts";
import { ProblemError } from "../problems.ts";
import type { ComposeHealthcheck } from "./compose-model.ts";
import { parseGoDurationMs } from "./go-duration.ts";

/** Long enough for most services; Docker itself never calls a container late while its start period lasts. */
const shortestMs = 60_000;

/**
 * How long a new container may take to be healthy: the label `hotpush.healthy-timeout` (such as `90s`), else a minute,
 * else as long as Docker's own health check needs to call it unhealthy, plus 10 s.
 *
 * @throws ProblemError `compose_invalid` where the label is no duration
 */
export function healthyTimeoutMs(
  healthcheck: ComposeHealthcheck | undefined,
  label: string | undefined,
): number {
  if (label !== undefined) {
    const ms = parseDurationMs(label);
    if (ms === null || ms === 0) {
      throw new ProblemError({
        code: "compose_invalid",
        detail: `The label hotpush.healthy-timeout is "${label}", not a duration such as 90s.`,
      });
    }
    return ms;
  }
  return Math.max(shortestMs, untilUnhealthyMs(healthcheck) + 10_000);
}

/** Docker's defaults: no start period, 3 retries, 30 s between them and for each. */
function untilUnhealthyMs(healthcheck: ComposeHealthcheck | undefined): number {
  if (!healthcheck || healthcheck.disable) return 0;
  const startPeriodMs = parseGoDurationMs(healthcheck.start_period ?? "0s") ?? 0;
  const intervalMs = parseGoDurationMs(healthcheck.interval ?? "30s") ?? 30_000;
  const timeoutMs = parseGoDurationMs(healthcheck.timeout ?? "30s") ?? 30_000;
  return startPeriodMs + (healthcheck.retries ?? 3) * (intervalMs + timeoutMs);
}
