import { parseDurationMs } from "../../config/duration.ts";
import { parseGoDurationMs } from "../../rollout/compose/timeouts.ts";
import { defaultDrainTimeoutMs } from "../../rollout/proxy/drain.ts";
import { type Fault, warning } from "../check.ts";
import type { Scene } from "../scene.ts";
import { lintCheck } from "./lint-check.ts";
import type { Role } from "./roles.ts";

/** What Docker gives a container between SIGTERM and SIGKILL where nothing is said. */
const defaultGraceMs = 10_000;

/** What the service takes after its own grace is over (main.ts). */
const stopMarginMs = 4_000;

/** Docker kills what has not ended within its grace period, in the middle of what it does. */
export const stopGraceLint = lintCheck(
  "lint-stop-grace",
  "what is stopped gets the time to end what it does",
  "it is long enough",
  ({ roles }, scene) => roles.flatMap((role) => faultOf(role, scene)),
);

function faultOf({ name, service, kind, label }: Role, scene: Scene): readonly Fault[] {
  const graceMs = parseGoDurationMs(service.stop_grace_period ?? "") ?? defaultGraceMs;
  const change = (ms: number) => ({ change: `services.${name}.stop_grace_period: ${ms / 1_000}s` });
  if (kind === "hotpush") {
    const neededMs = (parseDurationMs(scene.settings.env.SHUTDOWN_GRACE || "5s") ?? 0) + stopMarginMs;
    if (graceMs >= neededMs) return [];
    const text = `Docker kills ${name} ${graceMs / 1_000} s after it asked it to stop, but SHUTDOWN_GRACE takes up to ${neededMs / 1_000} s.`;
    return [warning(text, change(neededMs))];
  }
  // By the live file a container is drained before it is stopped; by a proxy that watches Docker, while it stops.
  if (label !== "scale" || graceMs >= defaultDrainTimeoutMs) return [];
  const text = `${name} has ${graceMs / 1_000} s to finish its requests when it is stopped; Hotpush gives others ${defaultDrainTimeoutMs / 1_000} s.`;
  return [warning(text, change(defaultDrainTimeoutMs))];
}
