import { inspect } from "node:util";

/** A value that cannot be printed by accident: JSON, template strings and `inspect` all show `[redacted]`. */
export interface Secret {
  readonly reveal: () => string;
}

/** Wraps `value` so that only `reveal()` gives it back. */
export function makeSecret(value: string): Secret {
  const redacted = () => "[redacted]";
  return Object.freeze({
    reveal: () => value,
    toString: redacted,
    toJSON: redacted,
    [inspect.custom]: redacted,
  });
}
