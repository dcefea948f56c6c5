import { parseDurationMs } from "../../config/duration.ts";
import { parseGoDurationMs } from "../../rollout/compose/timeouts.ts";
import { defaultDrainTimeoutMs } from "../../rollout/proxy/drain.ts";
import { type Fault, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { lintCheck, type Role } from "./lint-check.ts";

/** Docker's default time between SIGTERM and SIGKILL. */
const defaultGraceMs = 10_000;

/** The service needs this much time after its own grace (main.ts). */
const stopMarginMs = 4_000;

/** After its grace period, Docker kills a container in the middle of its work. */
export const stopGraceLint = lintCheck(
  "lint-stop-grace",
  "a container that is stopped has enough time to finish its work",
  "it is long enough",
  ({ roles }, context) => roles.flatMap((role) => faultOf(role, context)),
);

function faultOf({ name, service, kind, label }: Role, { settings }: DoctorContext): readonly Fault[] {
  const graceMs = parseGoDurationMs(service.stop_grace_period ?? "") ?? defaultGraceMs;
  const change = (ms: number) => ({ change: `services.${name}.stop_grace_period: ${ms / 1_000}s` });
  if (kind === "hotpush") {
    const neededMs = (parseDurationMs(settings.env.SHUTDOWN_GRACE || "5s") ?? 0) + stopMarginMs;
    if (graceMs >= neededMs) return [];
    const text = `Docker kills ${name} ${graceMs / 1_000} s after it asked it to stop, but SHUTDOWN_GRACE takes up to ${neededMs / 1_000} s.`;
    return [warning(text, change(neededMs))];
  }
  // With the live file a container is drained before it is stopped; with a proxy that watches Docker, while it stops.
  if (label !== "scale" || graceMs >= defaultDrainTimeoutMs) return [];
  const text = `${name} has ${graceMs / 1_000} s to finish its requests when it is stopped; Hotpush gives other services ${defaultDrainTimeoutMs / 1_000} s.`;
  return [warning(text, change(defaultDrainTimeoutMs))];
}
