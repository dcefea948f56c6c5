/** What a check found: all is right, there is nothing to check, or what is wrong. */
export type ProbeResult =
  | { readonly outcome: "ok"; readonly fact: string }
  | { readonly outcome: "skipped"; readonly reason: string }
  | { readonly outcome: "faulty"; readonly faults: readonly Fault[] };

/** A `problem` keeps a push from being deployed, or lets somebody in. A `warning` costs requests or will cost work. */
export interface Fault {
  readonly severity: "problem" | "warning";
  readonly text: string;
  readonly command?: string;
  readonly change?: string;
}

/**
 * How a fault is fixed: a shell command for the user that the text names, else for this user; or what to write into a file
 * or a form, if no command can do it.
 */
export type Fix = string | { readonly change: string; readonly command?: string };

/** What a check returns: a result, or the only fault. */
export type CheckFinding = ProbeResult | Fault;

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
export function problem(text: string, fix?: Fix): Fault {
  return { severity: "problem", text, ...(typeof fix === "string" ? { command: fix } : fix) };
}

/** A fault that costs requests or will cost work. @param text one or two sentences */
export function warning(text: string, fix?: Fix): Fault {
  return { ...problem(text, fix), severity: "warning" };
}

/** The result of a check that found any number of faults. @param fact what is right if there are none */
export function okUnless(faults: readonly Fault[], fact: string): ProbeResult {
  return faults.length === 0 ? ok(fact) : { outcome: "faulty", faults };
}

/** The result of a check that may have returned a single fault. */
export function resultOf(found: CheckFinding): ProbeResult {
  return "severity" in found ? { outcome: "faulty", faults: [found] } : found;
}

/** `word` as a POSIX shell takes it for one word. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The start of a command that runs git in `directory`. */
export function gitIn(directory: string): string {
  return `git -C ${quote(directory)}`;
}
