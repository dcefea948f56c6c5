import type { Command } from "commander";
import { openCall, readEvents } from "#calls/client";
import type { DeploymentJson, ProjectJson } from "#calls/shapes";
import { branchOf, shortCommit } from "#commit-names";
import { formatDuration } from "#config/duration";
import { isFinished } from "#deployments/deployment";
import { harmless, openTerminal, type Terminal } from "#platform/terminal";
import { fit, formatTable, wrapText } from "#platform/terminal-layout";
import { createLineCutter, lineText } from "#runner/log-file";
import { failedText } from "#site-requests";
import { type CommandContext, deploymentId, newCommand, numberParser, projectOption } from "./command.ts";
import { commitText, endingLines, localTime, originText, pauseText, stateText } from "./deployment-text.ts";
import { follow, interruptedExitCode } from "./follow.ts";
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
  { call, terminal }: ServiceAccess,
  { limit, json }: HistoryOptions,
): Promise<number> {
  const history = await call("history", { limit });
  terminal.print(...(json ? [JSON.stringify(history)] : historyLines(history.deployments, terminal)));
  return 0;
}

/** Two lines for each deployment: how it went, and what it deployed for whom. */
function historyLines(
  deployments: readonly DeploymentJson[],
  { paint, columns }: Terminal,
): readonly string[] {
  if (deployments.length === 0) return ["Nothing was deployed yet. Push to main, or run: hotpush deploy"];
  // The name is the last column, so that only a long one is cut.
  const header = ["Id", "State", "Trigger", "Branch", "Recorded", "Took", "Failed", "Project"];
  const table = formatTable([header, ...deployments.map(row)]).map((line) => fit(line, columns));
  const [first = "", rule = "", ...lines] = table;
  const indent = " ".repeat(rule.indexOf(" ") + gapColumns);
  const painted = deployments.flatMap((deployment, index) => {
    const line = (lines[index] ?? "").replace(stateText(deployment), stateText(deployment, paint));
    return [line, indent + whatLine(deployment, columns - indent.length)];
  });
  return [paint("bold", first), paint("dim", rule), ...painted];
}

function row(deployment: DeploymentJson): readonly string[] {
  const { id, trigger, ref, createdAt, durationMs, requests, project } = deployment;
  const took = durationMs === null ? "" : formatDuration(durationMs);
  const failed = requests === null ? "" : failedText(requests);
  const recorded = localTime(createdAt);
  return [String(id), stateText(deployment), trigger, branchOf(ref), recorded, took, failed, project];
}

function whatLine(deployment: DeploymentJson, columns: number): string {
  const commit = commitText(deployment);
  const left = columns - commit.length - gapColumns;
  const why = deployment.skipReason ?? deployment.waitReason;
  const origin = why === null ? originText(deployment, left) : fit(why, left);
  return `${commit}${" ".repeat(gapColumns)}${origin}`.trimEnd();
}

interface LogsOptions extends ProjectChoice {
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** `hotpush logs`: what a deployment printed, and with -f what it prints until it has ended. */
export function makeLogsCommand({ env, finish }: CommandContext): Command {
  const description =
    "Print the output of the running deployment, else of the last one, or of the one with this number. The logs of the last 50 are kept.";
  return newCommand("logs", description, [
    "hotpush logs             the running or the last deployment, so far",
    "hotpush logs -f          until it has ended, with its steps",
    "hotpush logs 7 --json    events of deployment 7, one JSON object a line",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .addOption(projectOption())
    .option("-f, --follow", "go on until the deployment has ended")
    .option("--json", "events, one JSON object a line (docs/cli.md)")
    .action(async (id: number | undefined, options: LogsOptions) =>
      finish(await showLogs(accessService(env, options), id ?? null, options)),
    );
}

async function showLogs(
  service: ServiceAccess,
  id: number | null,
  { follow: isFollowing = false, json = false }: LogsOptions,
): Promise<number> {
  if (isFollowing) {
    const ended = await follow(service, id, json ? "events" : "text");
    return ended === null ? interruptedExitCode : 0;
  }
  if (!json) await printLog(service, id);
  else {
    const { place, terminal, whose } = service;
    const { signal } = new AbortController();
    for await (const event of readEvents(place, { id, isFollowing: false, whose, signal }))
      terminal.print(JSON.stringify(event));
  }
  return 0;
}

/** Unchanged if it is piped; on a terminal without control sequences. */
async function printLog(service: ServiceAccess, id: number | null): Promise<void> {
  const { place, terminal, whose } = service;
  const cutter = createLineCutter((line) => terminal.print(harmless(lineText(line))));
  let isEmpty = true;
  for await (const piece of await openCall(place, "log", { ...whose, id: id ?? "latest" })) {
    isEmpty = false;
    if (terminal.isInteractive) cutter.push(piece);
    else process.stdout.write(piece);
  }
  cutter.finish();
  if (isEmpty) process.stderr.write("There is no output: none was printed, or it is no longer kept.\n");
  // Its ending goes to standard error, so that a pipe gets the script's output and nothing else.
  const { deployment } = await service.call("deployment", { id: id ?? "latest" });
  const errors = openTerminal(process.stderr, service.env);
  if (isFinished(deployment.state)) errors.print(...endingLines(deployment, errors));
}

/** `hotpush projects`: what is live of each project, and what keeps it from being deployed. */
export function makeProjectsCommand({ env, finish }: CommandContext): Command {
  const description =
    "List the projects: their branches, what is live and since when, how the last deployment ended, and whether the queue is paused or the settings are faulty.";
  return newCommand("projects", description, [
    "hotpush projects          the list for a person",
    "hotpush projects --json   the same for a program",
  ])
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json }: { readonly json?: boolean }) => {
      const { call, terminal } = accessService(env, {});
      const list = await call("projects", {});
      terminal.print(...(json ? [JSON.stringify(list)] : projectLines(list.projects, terminal)));
      finish(0);
    });
}

const noteIndent = "    ";

/** A line for each project, and further ones for what is live and what holds it. */
function projectLines(projects: readonly ProjectJson[], { paint, columns }: Terminal): readonly string[] {
  if (projects.length === 0) return ["There are no projects yet. Add a file to PROJECTS_PATH."];
  const table = formatTable([["Project", "Branch", "Live", "Since", "Last"], ...projects.map(projectRow)]);
  const [first = "", rule = "", ...lines] = table.map((line) => fit(line, columns));
  const painted = projects.flatMap((project, index) => [lines[index] ?? "", ...notes(project, columns)]);
  return [paint("bold", first), paint("dim", rule), ...painted];
}

function projectRow({ name, branches, live, last }: ProjectJson): readonly string[] {
  const since = live?.since ? localTime(live.since) : "";
  const ending = last ? `${stateText(last)} (${last.id})` : "";
  return [name, branches.join(", "), live ? shortCommit(live.commit) : "", since, ending];
}

function notes({ live, paused, waiting, fault, isServed }: ProjectJson, columns: number): readonly string[] {
  const what = [live?.subject, live?.author].filter(Boolean).join("  ");
  const isRemoved = !isServed && fault === null;
  return [
    what,
    paused ? pauseText(paused) : "",
    waiting > 0 ? `${waiting} ${waiting === 1 ? "waits" : "wait"} in the queue` : "",
    fault === null ? "" : `faulty settings: ${fault}`,
    isRemoved ? "its file was removed, so nothing more is deployed" : "",
  ]
    .filter((text) => text !== "")
    .flatMap((text) => wrapText(noteIndent + text, columns).map((line) => fit(line, columns)));
}
