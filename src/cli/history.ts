import type { Command } from "commander";
import { branchOf } from "../commit-names.ts";
import { formatDuration } from "../config/duration.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import type { HistoryJson } from "../control/history.ts";
import { fit, formatTable } from "../platform/terminal/layout.ts";
import type { Terminal } from "../platform/terminal/terminal.ts";
import { failedText } from "../site-requests.ts";
import { type CommandContext, newCommand, numberParser, projectOption } from "./command.ts";
import { commitText, localTime, originText, stateText } from "./deployment-text.ts";
import { accessService, type ProjectChoice, type ServiceAccess } from "./service-access.ts";

const gapColumns = 2;

interface HistoryOptions extends ProjectChoice {
  readonly limit: number;
  readonly json?: boolean;
}

/** `hotpush history`: the newest deployments, newest first. */
export function makeHistoryCommand({ env, finish }: CommandContext): Command {
  const description =
    "List the newest deployments, newest first: of the project, or of all. The last 1,000 are kept.";
  const limit = numberParser(1, 1_000, "Not a number from 1 to 1,000.");
  return newCommand("history", description, [
    "hotpush history                       the last 20",
    "hotpush history --limit 1000 --json   all of them for a program",
  ])
    .addOption(projectOption())
    .option("--limit <n>", "how many, at most 1,000", limit, 20)
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async (options: HistoryOptions) =>
      finish(await printHistory(accessService(env, options), options)),
    );
}

async function printHistory(
  { get, terminal }: ServiceAccess,
  { limit, json }: HistoryOptions,
): Promise<number> {
  const history = await get<HistoryJson>(`/deployments?limit=${limit}`);
  terminal.print(...(json ? [JSON.stringify(history)] : historyLines(history.deployments, terminal)));
  return 0;
}

/** Two lines for each deployment: how it went, and what it deployed for whom. */
function historyLines(
  deployments: readonly DeploymentJson[],
  { paint, columns }: Terminal,
): readonly string[] {
  if (deployments.length === 0) return ["Nothing was deployed yet. Push to main, or run: hotpush deploy"];
  const header = ["Id", "State", "Trigger", "Branch", "Recorded", "Took", "Failed"];
  const hasSeveral = new Set(deployments.map(({ project }) => project)).size > 1;
  const rows = [header, ...deployments.map(row)];
  // The last column, so that only a long name is cut.
  const cells = ["Project", ...deployments.map(({ project }) => project)];
  const [first = "", rule = "", ...lines] = hasSeveral
    ? formatTable(rows.map((one, index) => [...one, cells[index] ?? ""])).map((line) => fit(line, columns))
    : formatTable(rows);
  const indent = " ".repeat(rule.indexOf(" ") + gapColumns);
  const painted = deployments.flatMap((deployment, index) => {
    const line = (lines[index] ?? "").replace(stateText(deployment), stateText(deployment, paint));
    return [line, indent + whatLine(deployment, columns - indent.length)];
  });
  return [paint("bold", first), paint("dim", rule), ...painted];
}

function row(deployment: DeploymentJson): readonly string[] {
  const { id, trigger, ref, createdAt, durationMs, requests } = deployment;
  const took = durationMs === null ? "" : formatDuration(durationMs);
  const failed = requests === null ? "" : failedText(requests);
  return [String(id), stateText(deployment), trigger, branchOf(ref), localTime(createdAt), took, failed];
}

function whatLine(deployment: DeploymentJson, columns: number): string {
  const commit = commitText(deployment);
  const left = columns - commit.length - gapColumns;
  const why = deployment.skipReason ?? deployment.waitReason;
  const origin = why === null ? originText(deployment, left) : fit(why, left);
  return `${commit}${" ".repeat(gapColumns)}${origin}`.trimEnd();
}
