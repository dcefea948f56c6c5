import type { JsonObject, Reading } from "./host.ts";

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at `path`, following own properties only, so that `__proto__` and its like are plain names. */
export function valueAt(payload: JsonObject, ...path: readonly string[]): unknown {
  let value: unknown = payload;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** The string at `path`, or null where there is none or it is no string. */
export function textAt(payload: JsonObject, ...path: readonly string[]): string | null {
  const value = valueAt(payload, ...path);
  return typeof value === "string" ? value : null;
}

/** The reading of a payload whose `field` (slash path from its root) is not as `expected`. */
export function unusable(field: string, expected: string): Reading {
  return { kind: "unusable", field, expected };
}
