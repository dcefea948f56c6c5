import { parseDurationMs } from "../../config/duration.ts";
import { parseGoDurationMs } from "../../rollout/compose/project.ts";
import { defaultDrainTimeoutMs } from "../../rollout/proxy/drain.ts";
import { type Fault, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import type { LintedProject, Role } from "./lint.ts";

/**
 * "Started" is not "ready": after a reboot an app would ask a database that does not answer yet. A proxy must not wait: it
 * holds requests back by itself, and the push that fixes a broken app comes through it.
 */
export function lintDependsOn(
  { name, service, kind }: Role,
  { roles, model }: LintedProject,
): readonly Fault[] {
  if (kind === "proxy") return [];
  return Object.entries(service.depends_on ?? {}).flatMap(([other, { condition }]) => {
    if (condition === "service_healthy" || condition === "service_completed_successfully") return [];
    const { healthcheck } = model.services[other] ?? {};
    const hasCheck = healthcheck !== undefined && !healthcheck.disable;
    const isData = roles.some((role) => role.name === other && role.kind === "data");
    if (!hasCheck && !isData) return [];
    const text = `${name} does not wait until ${other} is healthy, only until it has started.`;
    const more = hasCheck ? "" : `; and give ${other} a healthcheck`;
    return [
      warning(text, { change: `services.${name}.depends_on.${other}.condition: service_healthy${more}` }),
    ];
  });
}

/** Hotpush's own policy has its own check (restart). A written "no" is intended: the service runs once. */
export function lintRestart({ name, service, kind }: Role): readonly Fault[] {
  const isIntended = ["always", "unless-stopped", "no"].includes(service.restart ?? "");
  if (isIntended || kind === "run-once" || kind === "hotpush") return [];
  const text = `${name} does not start again after a crash or a reboot. If it runs once, write restart: "no".`;
  return [warning(text, { change: `services.${name}.restart: unless-stopped` })];
}

/** Docker's default time between SIGTERM and SIGKILL. */
const defaultGraceMs = 10_000;

/** The service needs this much time after its own grace (main.ts). */
const stopMarginMs = 4_000;

/** After its grace period, Docker kills a container in the middle of its work. */
export function lintStopGrace(
  { name, service, kind, label }: Role,
  _: LintedProject,
  { settings }: DoctorContext,
): readonly Fault[] {
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
