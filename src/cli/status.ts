import type { Command } from "commander";
import type { DeploymentJson, SecretJson, SecretsJson, StatusJson, WholeStatusJson } from "#calls/shapes";
import { branchOf } from "#commit-names";
import { formatDuration } from "#config/duration";
import { serverCommands, serverServices } from "#config/server";
import type { Terminal } from "#platform/terminal";
import { wrapText } from "#platform/terminal-layout";
import { findProjectAround, findServer, removedFiles, type Server } from "#setup/server";
import { type CommandContext, newCommand, projectOption } from "./command.ts";
import {
  commitText,
  holdText,
  localTime,
  originText,
  pauseText,
  requestLines,
  since,
  stateText,
} from "./deployment-text.ts";
import { accessService, type ProjectChoice } from "./service-access.ts";

/** `hotpush status`: its exit code is 0 if the service is healthy. */
export function makeStatusCommand({ env, finish }: CommandContext): Command {
  const description =
    "Show what is running, what is waiting, how the last deployment of each branch ended, and the health of the service: for the project, or for all. The exit code is 0 if it is healthy.";
  return newCommand("status", description, [
    "hotpush status          the status for a person",
    "hotpush status --json   the same for a program",
  ])
    .addOption(projectOption())
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json, ...choice }: ProjectChoice & { readonly json?: boolean }) => {
      const { call, terminal } = accessService(env, choice);
      const status = await call("status", {});
      const server = findServer(env);
      terminal.print(...(json ? [JSON.stringify(status)] : statusLines(status, terminal, server)));
      finish(status.health.isHealthy ? 0 : 1);
    });
}

const labelColumns = 11;
const see = "See: ";

type Row = readonly [label: string, texts: readonly string[]];

/** The status as lines for a person, none longer than the terminal is wide. */
function statusLines(
  status: StatusJson | WholeStatusJson,
  terminal: Terminal,
  server: Server | null,
): readonly string[] {
  const { version, startedAt } = status;
  const rows = [
    ...("projects" in status
      ? [...removedRows(server), ...wholeRows(status, terminal)]
      : rowsOf(status, terminal)),
    ...inboxRows(status, server),
  ];
  return [
    `Hotpush ${version}, running for ${since(startedAt)}, since ${localTime(startedAt)}`,
    "",
    ...rows.flatMap(([label, texts]) => labelled(label, texts, terminal)),
  ];
}

function rowsOf(status: StatusJson, terminal: Terminal): readonly Row[] {
  const { running, waiting, last, catchUp, secrets, paused, hold, fault } = status;
  return [
    ["Now", runningTexts(running ? [running] : [], terminal)],
    ...holdRows(hold),
    [
      "Waiting",
      waiting.flatMap((one) => [
        named(one),
        ...(one.waitReason === null ? [] : [one.waitReason]),
        ...origin(one, terminal),
      ]),
    ],
    ...(paused === null ? [] : [["Queue", [pauseText(paused)]] as const]),
    [
      "Last",
      last.flatMap((one) => [lastText(one, terminal), ...origin(one, terminal), ...requestLines(one)]),
    ],
    ["Branch", [branchText(status)]],
    ["Health", [healthText(status, terminal)]],
    ...serverRows(status, terminal),
    ...(fault === null ? [] : [["Settings", [fault]] as const]),
    ["Catch-up", [catchUpText(catchUp)]],
    ["Secret", secretTexts(secrets)],
  ];
}

/** The same rows for all projects, with the name of its project before each deployment. */
function wholeRows(status: WholeStatusJson, terminal: Terminal): readonly Row[] {
  const { running, waiting, last, projects, hold } = status;
  const paused = projects.flatMap(({ name, paused }) => (paused ? [`${name}: ${pauseText(paused)}`] : []));
  const faulty = projects.flatMap(({ name, fault }) => (fault === null ? [] : [`${name}: ${fault}`]));
  return [
    ["Now", runningTexts(running, terminal, prefixOf)],
    ...holdRows(hold),
    ["Waiting", waiting.map((one) => prefixOf(one) + named(one))],
    ...(paused.length === 0 ? [] : [["Paused", paused] as const]),
    ["Last", last.map((one) => prefixOf(one) + lastText(one, terminal))],
    ["Health", [healthText(status, terminal)]],
    ...serverRows(status, terminal),
    ...(faulty.length === 0 ? [] : [["Settings", faulty] as const]),
  ];
}

const prefixOf = ({ project }: DeploymentJson) => `${project}: `;

function healthText({ health }: Pick<StatusJson, "health">, { paint }: Terminal): string {
  return health.isHealthy ? paint("green", "ok") : paint("red", health.detail ?? "");
}

function serverRows({ serverFaults }: Pick<StatusJson, "serverFaults">, { paint }: Terminal): readonly Row[] {
  return serverFaults.length === 0 ? [] : [["Server", serverFaults.map((fault) => paint("red", fault))]];
}

function holdRows(hold: StatusJson["hold"]): readonly Row[] {
  return hold === null ? [] : [["Held", [holdText(hold)]]];
}

/** The checkout around the working directory was a project once. */
function removedRows(server: Server | null): readonly Row[] {
  const removed = server && findProjectAround({ ...server, files: removedFiles(server.files) }, ".");
  if (!removed) return [];
  return [["Project", [`${removed.name} was removed from this server. To bring it back: hotpush init`]]];
}

function inboxRows(
  { inbox, statePath }: StatusJson | WholeStatusJson,
  server: Server | null,
): readonly Row[] {
  if (inbox === null) return [];
  const { reachedAt, failure } = inbox;
  const reached = reachedAt === null ? "has never called" : `called ${since(reachedAt)} ago`;
  if (failure === null) return [["Front", [reached]]];
  const isOfPart = server !== null && server.state.run === statePath;
  const next = isOfPart ? [`${see}${serverCommands(server.files).logsOf(serverServices.front)}`] : [];
  return [["Front", [`${reached}, and not now: ${failure}`, ...next]]];
}

function labelled(label: string, texts: readonly string[], { columns, paint }: Terminal): readonly string[] {
  const given = texts.length === 0 ? ["nothing"] : texts;
  // A command stays on its line, so that it can be copied.
  const lines = given.flatMap((text) =>
    text.startsWith(see) ? [text] : wrapText(text, columns - labelColumns),
  );
  return lines.map((line, index) =>
    index === 0
      ? `${paint("bold", label)}${" ".repeat(labelColumns - label.length)}${line}`
      : " ".repeat(labelColumns) + line,
  );
}

function runningTexts(
  running: WholeStatusJson["running"],
  terminal: Terminal,
  prefix = (_deployment: DeploymentJson) => "",
): readonly string[] {
  if (running.length === 0) return ["nothing runs"];
  return running.flatMap(({ deployment, step }) => {
    const begun = since(deployment.startedAt ?? deployment.createdAt);
    const doing = step ? `step ${step.name}, for ${since(step.startedAt)}` : "before its first step";
    const first = `${prefix(deployment)}${named(deployment)}, for ${begun}`;
    return [first, doing, ...origin(deployment, terminal)];
  });
}

function lastText(deployment: DeploymentJson, { paint }: Terminal): string {
  const { finishedAt, durationMs, skipReason } = deployment;
  const took = durationMs === null ? "" : `, took ${formatDuration(durationMs)}`;
  const when = finishedAt === null ? "" : ` ${localTime(finishedAt)}`;
  const why = skipReason === null ? "" : `. ${skipReason}`;
  return `${named(deployment)}: ${stateText(deployment, paint)}${when}${took}${why}`;
}

function named(deployment: DeploymentJson): string {
  const { id, ref, trigger } = deployment;
  return `deployment ${id}, ${branchOf(ref)} at ${commitText(deployment)} (${trigger})`;
}

/** A line with its commit and the people behind it, if they are known. */
function origin(deployment: DeploymentJson, { columns }: Terminal): readonly string[] {
  const text = originText(deployment, columns - labelColumns);
  return text === "" ? [] : [text];
}

function branchText({ branches }: StatusJson): string {
  return branches.length === 1 ? `${branches[0]} only (BRANCH)` : branches.join(" and ");
}

function catchUpText({ intervalMs, lookedAt, failure }: StatusJson["catchUp"]): string {
  if (intervalMs === 0) return "off (CATCH_UP_INTERVAL is 0)";
  if (failure !== null) return `cannot look for missed pushes: ${failure}`;
  const last = lookedAt === null ? "once something was deployed" : `last ${since(lookedAt)} ago`;
  return `looks for missed pushes every ${formatDuration(intervalMs)}, ${last}`;
}

function secretTexts({ current, previous, advice }: SecretsJson): readonly string[] {
  if (previous === null) return [used("last used", current)];
  const texts = [used("current: last used", current), used("previous: last used", previous)];
  return advice === null ? texts : [...texts, advice];
}

function used(what: string, { lastUsedAt, host, deliveryId, knownSince }: SecretJson): string {
  if (lastUsedAt === null) return `${what.replace("last used", "not used")} since ${localTime(knownSince)}`;
  const delivery = deliveryId === null ? "" : `, delivery ${deliveryId}`;
  return `${what} ${since(lastUsedAt)} ago by ${host ?? "a git host"}${delivery}`;
}
