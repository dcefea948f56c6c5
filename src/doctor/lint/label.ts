import { parseDurationMs } from "../../config/duration.ts";
import { type Fault, problem, warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";

interface Label {
  readonly expected: string;
  readonly isValid: (value: string) => boolean;
}

const isDuration = (value: string) => Boolean(parseDurationMs(value));

const labels: ReadonlyMap<string, Label> = new Map<string, Label>([
  [
    "hotpush.rollout",
    {
      expected: "live, scale or recreate",
      isValid: (value) => ["live", "scale", "recreate"].includes(value),
    },
  ],
  ["hotpush.healthy-timeout", { expected: "a duration such as 90s", isValid: isDuration }],
  ["hotpush.drain-timeout", { expected: "a duration such as 5m", isValid: isDuration }],
  [
    "hotpush.check",
    {
      expected: "a URL such as http://caddy/",
      isValid: (value) => value === "" || /^https?:\/\/\S+$/.test(value),
    },
  ],
  [
    "hotpush.engine",
    { expected: "compose or swarm", isValid: (value) => value === "compose" || value === "swarm" },
  ],
]);

/** A misspelt label has no effect, and nothing else reports it. */
export const labelLint = lintCheck(
  "lint-label",
  "every label of Hotpush is known and valid",
  "they are all known",
  ({ roles }) =>
    roles.flatMap(({ name, service }) =>
      Object.entries(service.labels ?? {}).flatMap(([key, value]) => faultOf(name, key, value)),
    ),
);

function faultOf(service: string, key: string, value: string): readonly Fault[] {
  if (!key.startsWith("hotpush.")) return [];
  const label = labels.get(key);
  const path = `services.${service}.labels`;
  if (!label) {
    const text = `${service} has the label ${key}, which does not exist. Known are ${[...labels.keys()].join(", ")}.`;
    return [warning(text, { change: `${path}: remove ${key}` })];
  }
  if (label.isValid(value)) return [];
  const text = `The label ${key} of ${service} is "${value}", not ${label.expected}: a roll-out refuses it.`;
  return [problem(text, { change: `${path}: ${key}: ${label.expected}` })];
}
