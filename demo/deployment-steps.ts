import type { LogLine, ServiceLog } from "./service-log.ts";

/** The part of a deploy script between a line `==> name` and the next. */
export interface Step {
  readonly name: string;
  readonly output: readonly string[];
  /** null for the last one, which only marks the end */
  readonly durationMs: number | null;
}

/** Reads the steps of a deployment from the service's log, each as soon as it ends, until the deployment ends. */
export async function* deploymentSteps(log: ServiceLog, deploymentId: number): AsyncGenerator<Step> {
  let step: { name: string; output: string[]; sinceMs: number } | null = null;
  for await (const line of log.follow()) {
    if (line.deployment !== deploymentId) continue;
    if (line.event === "deployment.output" && !line.msg.startsWith("==> ")) step?.output.push(line.msg);
    if (line.event === "deployment.step") {
      if (step) yield { ...step, durationMs: timeMs(line) - step.sinceMs };
      step = { name: String(line.step), output: [], sinceMs: timeMs(line) };
    }
    if (isEnding(line)) {
      if (step) yield { ...step, durationMs: null };
      return;
    }
  }
}

function isEnding({ event }: LogLine): boolean {
  return ["succeeded", "failed", "timed_out", "cancelled", "interrupted"].some(
    (state) => event === `deployment.${state}`,
  );
}

function timeMs({ time }: LogLine): number {
  return Date.parse(time ?? "");
}
