import type { DoctorContext } from "./context.ts";
import type { Fix } from "./fix.ts";

/** The headings of the report, in its order. */
export const groups = [
  "Configuration",
  "Service",
  "Disk",
  "Git",
  "Script",
  "Docker",
  "Compose file",
] as const;

/** One check. Its `id` names it in the report, in the JSON and in docs/troubleshooting.md. */
export interface Check {
  readonly id: string;
  readonly group: (typeof groups)[number];
  /** The claim that it checks, for a person. */
  readonly subject: string;
  readonly probe: (context: DoctorContext) => ProbeResult | Fault | Promise<ProbeResult | Fault>;
}

/** What a check found: all is right, there is nothing to check, or what is wrong. */
export type ProbeResult =
  | { readonly outcome: "ok"; readonly fact: string }
  | { readonly outcome: "skipped"; readonly reason: string }
  | { readonly outcome: "faulty"; readonly faults: readonly Fault[] };

/** A `problem` keeps a push from being deployed, or lets somebody in. A `warning` costs requests or will cost work. */
export interface Fault extends Fix {
  readonly severity: "problem" | "warning";
  readonly text: string;
}

/** All is right. @param fact what was found, in a few words */
export function ok(fact: string): ProbeResult {
  return { outcome: "ok", fact };
}

/** Nothing was checked, because of `reason`. */
export function skip(reason: string): ProbeResult {
  return { outcome: "skipped", reason };
}

/** For the checks of containers. */
export const noComposeFile: ProbeResult = skip("the repository has no compose file");

/** A fault that keeps a push from being deployed. @param text one or two sentences */
export function problem(text: string, fix: Fix = {}): Fault {
  return { severity: "problem", text, ...fix };
}

/** A fault that costs requests or will cost work. @param text one or two sentences */
export function warning(text: string, fix: Fix = {}): Fault {
  return { severity: "warning", text, ...fix };
}

/** The result of a check that found any number of faults. @param fact what is right if there are none */
export function okUnless(faults: readonly Fault[], fact: string): ProbeResult {
  return faults.length === 0 ? ok(fact) : { outcome: "faulty", faults };
}

/** The result of a probe, which may be a single fault. */
export function resultOf(found: ProbeResult | Fault): ProbeResult {
  return "severity" in found ? { outcome: "faulty", faults: [found] } : found;
}
