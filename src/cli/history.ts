import { type Command, InvalidArgumentError } from "commander";
import { formatDuration } from "../config/duration.ts";
import { callService } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { formatTable } from "../platform/terminal/table.ts";
import { openTerminal, type Terminal } from "../platform/terminal/terminal.ts";
import { asking } from "./ask-service.ts";
import { newCommand, type Surroundings } from "./command.ts";
import { commitText, originText } from "./terminal/origin.ts";
import { branchOf, localTime, states } from "./terminal/words.ts";

const gapColumns = 2;

interface Options {
  readonly limit: number;
  readonly json?: boolean;
}

/** `hotpush history`: the newest deployments, newest first. */
export function makeHistoryCommand({ env, finish }: Surroundings): Command {
  const summary = "Lists the newest deployments, newest first. The last 1,000 are kept.";
  return newCommand("history", summary, [
    "hotpush history                       the last 20",
    "hotpush history --limit 1000 --json   all of them for a program",
  ])
    .option("--limit <n>", "how many, at most 1,000", count, 20)
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ limit, json }: Options) =>
      finish(
        await asking(env, async (statePath) => {
          const path = `/deployments?limit=${limit}`;
          const history = await callService<{ deployments: readonly DeploymentJson[] }>(
            statePath,
            "GET",
            path,
          );
          const terminal = openTerminal(process.stdout, env);
          terminal.print(...(json ? [JSON.stringify(history)] : historyLines(history.deployments, terminal)));
          return 0;
        }),
      ),
    );
}

function count(text: string): number {
  const value = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= 1_000) return value;
  throw new InvalidArgumentError("Not a number from 1 to 1,000.");
}

/** Two lines for each deployment: what became of it, and what it deployed for whom. */
function historyLines(
  deployments: readonly DeploymentJson[],
  { paint, columns }: Terminal,
): readonly string[] {
  if (deployments.length === 0) return ["Nothing was deployed yet. Push to main, or run: hotpush deploy"];
  const header = ["Id", "State", "Trigger", "Branch", "Recorded", "Took"];
  const [first = "", rule = "", ...lines] = formatTable([header, ...deployments.map(row)]);
  const indent = " ".repeat(rule.indexOf(" ") + gapColumns);
  const painted = deployments.flatMap((deployment, index) => {
    const { text, colour } = states[deployment.state];
    const line = lines[index] ?? "";
    return [line.replace(text, paint(colour, text)), indent + whatLine(deployment, columns - indent.length)];
  });
  return [paint("bold", first), paint("dim", rule), ...painted];
}

function row({ id, state, trigger, ref, createdAt, durationMs }: DeploymentJson): readonly string[] {
  const took = durationMs === null ? "" : formatDuration(durationMs);
  return [String(id), states[state].text, trigger, branchOf(ref), localTime(createdAt), took];
}

function whatLine(deployment: DeploymentJson, columns: number): string {
  const commit = commitText(deployment);
  const origin = originText(deployment, columns - commit.length - gapColumns);
  return `${commit}${" ".repeat(gapColumns)}${origin}`.trimEnd();
}
