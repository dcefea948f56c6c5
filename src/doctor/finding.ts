/** What a check found: all is right (`fact`: what), there is nothing to check (`fact`: why), or what is wrong. */
export interface Finding {
  readonly outcome: "ok" | "skipped" | "faulty";
  readonly fact: string | null;
  readonly faults: readonly Fault[];
}

/** A `problem` keeps a push from being deployed, or lets somebody in. A `warning` costs requests or will cost work. */
export interface Fault {
  readonly severity: "problem" | "warning";
  readonly text: string;
  readonly command: string | null;
  readonly change: string | null;
  /** The path of a file or directory that the fault is about, and that does not exist where the check ran. */
  readonly missing: string | null;
}

/** A shell command; or what to write into a file or a form, if no command can do it; or the path that is missing. */
export type Fix = string | { readonly change: string } | { readonly missing: string | null };

/** All is right. @param fact what was found, in a few words */
export function ok(fact: string): Finding {
  return { outcome: "ok", fact, faults: [] };
}

/** Nothing was checked, because of `reason`. */
export function skip(reason: string): Finding {
  return { outcome: "skipped", fact: reason, faults: [] };
}

/** A fault that keeps a push from being deployed. @param text one or two sentences */
export function problem(text: string, fix?: Fix, severity: Fault["severity"] = "problem"): Finding {
  const by = typeof fix === "object" ? fix : { command: fix ?? null };
  const fault = { severity, text, command: null, change: null, missing: null, ...by };
  return { outcome: "faulty", fact: null, faults: [fault] };
}

/** A fault that costs requests or will cost work. @param text one or two sentences */
export function warning(text: string, fix?: Fix): Finding {
  return problem(text, fix, "warning");
}

/** All faults of what was found; `fact`: what is right if there are none. */
export function okUnless(found: readonly (Finding | null)[], fact: string): Finding {
  const faults = found.flatMap((one) => one?.faults ?? []);
  return faults.length === 0 ? ok(fact) : { outcome: "faulty", fact: null, faults };
}
