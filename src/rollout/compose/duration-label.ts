import { parseDurationMs } from "../../config/duration.ts";
import type { ComposeService } from "../../platform/compose/model.ts";
import { ProblemError } from "../../problems.ts";

/**
 * Reads a label that holds a duration, such as `hotpush.healthy-timeout: 90s`.
 *
 * @returns milliseconds, or null where the service has no such label
 * @throws ProblemError `compose_invalid` where it is no duration above zero
 */
export function durationLabelMs({ labels }: Pick<ComposeService, "labels">, label: string): number | null {
  const text = labels?.[label];
  if (text === undefined) return null;
  const ms = parseDurationMs(text);
  if (ms) return ms;
  const detail = `The label ${label} is "${text}", not a duration such as 90s.`;
  throw new ProblemError({ code: "compose_invalid", detail });
}
