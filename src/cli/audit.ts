import type { Command } from "commander";
import type { AuditJson, RefusalsJson } from "../control/access.ts";
import { formatTable } from "../platform/terminal/layout.ts";
import { type CommandContext, newCommand, numberParser } from "./command.ts";
import { localTime } from "./deployment-text.ts";
import { accessService } from "./service-access.ts";

const entryCount = numberParser(1, 1_000, "A number from 1 to 1,000.");

/** `hotpush audit`: what was done over the page and its API. */
export function makeAuditCommand({ env, finish }: CommandContext): Command {
  const description =
    "List what was done over the page and its API: when, by whom, from where. The newest is first. Attempts without the right are counted below.";
  return newCommand("audit", description, ["hotpush audit", "hotpush audit --limit 500 --json"])
    .option("--limit <count>", "how many entries (default: 50)", entryCount)
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ limit = 50, json }: { readonly limit?: number; readonly json?: boolean }) => {
      const { get, terminal } = accessService(env, { directory: null });
      const answer = await get<AuditAnswer>(`/audit?limit=${limit}`);
      terminal.print(...(json ? [JSON.stringify(answer)] : auditLines(answer)));
      finish(0);
    });
}

interface AuditAnswer {
  readonly entries: readonly AuditJson[];
  readonly refusals: readonly RefusalsJson[];
}

function auditLines({ entries, refusals }: AuditAnswer): readonly string[] {
  const counted = refusals.map(
    ({ visitor, action, count, address, lastAt }) =>
      `Refused: ${action} by ${visitor}, ${count.toLocaleString("en-US")} times, last at ${localTime(lastAt)} from ${address ?? "an unknown address"}`,
  );
  if (entries.length === 0) return ["Nothing was done over the page yet.", ...counted];
  const rows = entries.map(({ at, visitor, action, project, deployment, address, status }) => [
    localTime(at),
    visitor,
    `${action}${status < 400 ? "" : " (refused)"}`,
    [project, deployment].filter((one) => one !== null).join(" "),
    address ?? "",
  ]);
  return [...formatTable([["Time", "Who", "What", "Which", "Address"], ...rows]), ...counted];
}
