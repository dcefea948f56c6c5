import { count, type Examined } from "../examine.ts";

/** The contract of `--json`: docs/troubleshooting.md. Every member is always there. */
export function jsonReport(examined: readonly Examined[]): string {
  return JSON.stringify({ ...count(examined), checks: examined.map(checkJson) });
}

function checkJson({ check: { id, group, subject }, result }: Examined) {
  return {
    id,
    group,
    subject,
    outcome: result.outcome,
    fact: result.outcome === "ok" ? result.fact : result.outcome === "skipped" ? result.reason : null,
    faults: (result.outcome === "faulty" ? result.faults : []).map(({ severity, text, command, change }) => ({
      severity,
      text,
      command: command ?? null,
      change: change ?? null,
    })),
  };
}
