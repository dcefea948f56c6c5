import type { Scene } from "./scene.ts";

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

/** One thing that is looked at. `id` names it in the report, in the JSON and in docs/troubleshooting.md. */
export interface Check {
  readonly id: string;
  readonly group: (typeof groups)[number];
  /** What it looks at, for a person. */
  readonly subject: string;
  readonly look: (scene: Scene) => Result | Promise<Result>;
}

/** What a look gave: all right, nothing to look at, or what is wrong. */
export type Result =
  | { readonly outcome: "ok"; readonly fact: string }
  | { readonly outcome: "skipped"; readonly reason: string }
  | { readonly outcome: "faulty"; readonly faults: readonly Fault[] };

/** A `problem` keeps a push from being deployed, or lets somebody in; a `warning` will be regretted later. */
export interface Fault extends Cure {
  readonly severity: "problem" | "warning";
  readonly text: string;
}

/** How a fault is mended, as far as it can be said exactly. */
export interface Cure {
  /** What mends it when it is pasted into a shell of the user that the text names, else of this one. */
  readonly command?: string;
  /** What to write into a file or a form, where no command can do it. */
  readonly change?: string;
}

/** All right; `fact` is what was found, in a few words. */
export function ok(fact: string): Result {
  return { outcome: "ok", fact };
}

/** Not looked at, because of `reason`. */
export function skipped(reason: string): Result {
  return { outcome: "skipped", reason };
}

/** A fault that keeps a push from being deployed, told in a sentence. */
export function problem(text: string, cure: Cure = {}): Fault {
  return { severity: "problem", text, ...cure };
}

/** A fault that will be regretted later, told in a sentence. */
export function warning(text: string, cure: Cure = {}): Fault {
  return { severity: "warning", text, ...cure };
}

/** The result of a check that has found `faults`; `fact` is said where there are none. */
export function judge(faults: readonly Fault[], fact: string): Result {
  return faults.length === 0 ? ok(fact) : { outcome: "faulty", faults };
}
