import { parseDurationMs } from "../../config/duration.ts";
import { type Fault, problem, warning } from "../check.ts";
import type { Role } from "./lint.ts";

type Label = readonly [expected: string, isValid: (value: string) => boolean];

const isPort = (value: string) => /^\d{1,5}$/.test(value) && Number(value) > 0 && Number(value) < 65_536;
const isDuration = (value: string) => Boolean(parseDurationMs(value));

const labels = new Map<string, Label>([
  ["hotpush.rollout", ["live, scale or recreate", (value) => /^(?:live|scale|recreate)$/.test(value)]],
  ["hotpush.healthy-timeout", ["a duration such as 90s", isDuration]],
  ["hotpush.drain-timeout", ["a duration such as 5m", isDuration]],
  ["hotpush.check", ["a URL such as http://caddy/", (value) => /^(?:https?:\/\/\S+)?$/.test(value)]],
  ["hotpush.guard", ["a duration such as 10s, or 0", (value) => parseDurationMs(value) !== null]],
  ["hotpush.internal", ["the port of the service in its container", isPort]],
  ["hotpush.engine", ["compose or swarm", (value) => /^(?:compose|swarm)$/.test(value)]],
]);

/** A misspelt label has no effect, and nothing else reports it. */
export function lintLabels({ name, service }: Role): readonly Fault[] {
  const ours = Object.entries(service.labels ?? {}).filter(([key]) => key.startsWith("hotpush."));
  return ours.flatMap(([key, value]) => faultOf(name, key, value));
}

function faultOf(service: string, key: string, value: string): readonly Fault[] {
  const [expected, isValid] = labels.get(key) ?? [];
  const path = `services.${service}.labels`;
  if (isValid === undefined) {
    const text = `${service} has the label ${key}, which does not exist. Known are ${[...labels.keys()].join(", ")}.`;
    return [warning(text, { change: `${path}: remove ${key}` })];
  }
  if (isValid(value)) return [];
  const text = `The label ${key} of ${service} is "${value}", not ${expected}: it is refused.`;
  return [problem(text, { change: `${path}: ${key}: ${expected}` })];
}
