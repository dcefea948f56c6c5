import type { ComposeHealthcheck } from "../../platform/compose/model.ts";
import { parseGoDurationMs } from "./go-duration.ts";

/** Long enough for most services; Docker itself never calls a container late while its start period lasts. */
const shortestMs = 60_000;

/**
 * How long a new container may take to be healthy where no label says: a minute, or as long as Docker's own health check
 * needs to call it unhealthy, plus 10 s.
 */
export function defaultHealthyTimeoutMs(healthcheck: ComposeHealthcheck | undefined): number {
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
