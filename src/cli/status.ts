import type { Command } from "commander";
import { missedTexts } from "#calls/missed";
import type { DeploymentJson, SecretJson, StatusJson, WholeStatusJson } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { branchOf } from "#deployments/push";
import { type Terminal, wrapText } from "#platform/terminal";
import { findProjectAround, findServer, removedFiles } from "#setup/server";
import { type CommandContext, newCommand, projectOption } from "./command.ts";
import {
  commitText,
  heldText,
  localTime,
  originText,
  pauseText,
  requestLines,
  since,
  stateText,
} from "./deployment-text.ts";
import { answering } from "./service-access.ts";

export const commands = { status: makeStatusCommand };

/** `hotpush status`: its exit code is 0 if the service is healthy. */
function makeStatusCommand(context: CommandContext): Command {
  const description =
    "Show what is running, what is waiting, how the last deployment of each branch ended, and the health of the service: for the project, or for all. The exit code is 0 if it is healthy.";
  const command = newCommand("status", description, ["hotpush status"]).addOption(projectOption());
  return answering(command, context, async ({ env, call }) => {
    const answer = await call("status", {});
    const lines = (terminal: Terminal) => statusLines(answer, terminal, env);
    return { answer, lines, isGood: answer.health.isHealthy };
  });
}

const labelColumns = 11;

/** The status as lines for a person, none longer than the terminal is wide: of a project, or of all with their names. */
function statusLines(
  status: StatusJson | WholeStatusJson,
  terminal: Terminal,
  env: NodeJS.ProcessEnv,
): readonly string[] {
  const { version, startedAt, waiting, last, hold, health, serverFaults, inbox } = status;
  const { paint, columns } = terminal;
  const one = "projects" in status ? null : status;
  const running = "projects" in status ? status.running : [status.running ?? []].flat();
  const projects = "projects" in status ? status.projects : [{ ...status, name: status.project }];
  const of = (project: string, text: string) => (one ? text : `${project}: ${text}`);
  const about = (each: DeploymentJson, more: readonly string[], after = "") => {
    const origin = originText(each, columns - labelColumns);
    return [of(each.project, nameOf(each)) + after, ...more, ...(origin === "" ? [] : [origin])];
  };
  const rows: readonly (readonly [label: string, texts: readonly string[], ifNone?: string])[] = [
    ["Project", one ? [] : removedTexts(env)],
    [
      "Now",
      running.flatMap((each) => about(each.deployment, [stepText(each)], runsFor(each))),
      "nothing runs",
    ],
    ["Held", hold ? [`no deployment starts since ${heldText(hold)}`] : []],
    [
      "Waiting",
      waiting.flatMap((each) => about(each, each.waitReason === null ? [] : [each.waitReason])),
      "nothing",
    ],
    ["Paused", projects.flatMap(({ name, paused }) => (paused ? [of(name, pauseText(paused))] : []))],
    [
      "Last",
      last.flatMap((each) => [...about(each, [], endingOf(each, terminal)), ...requestLines(each)]),
      "nothing",
    ],
    ["Health", [health.isHealthy ? paint("green", "ok") : paint("red", health.detail ?? "")]],
    ["Server", serverFaults.map((fault) => paint("red", fault))],
    ["Settings", projects.flatMap(({ name, fault }) => (fault === null ? [] : [of(name, fault)]))],
    [
      "Missed",
      projects.flatMap((each) =>
        missedTexts(each).map(({ at, text }) => of(each.name, `${since(at)} ago: ${text}`)),
      ),
    ],
    ["Catch-up", one ? [catchUpText(one.catchUp)] : []],
    ["Secret", one ? secretTexts(one.secrets) : []],
    ["Front", inbox ? frontTexts(inbox) : []],
  ];
  return [
    `Hotpush ${version}, running for ${since(startedAt)}, since ${localTime(startedAt)}`,
    "",
    ...rows.flatMap(([label, texts, ifNone = []]) =>
      labelled(label, texts.length > 0 ? texts : [ifNone].flat(), terminal),
    ),
  ];
}

function labelled(label: string, texts: readonly string[], { columns, paint }: Terminal): readonly string[] {
  const lines = texts.flatMap((text) => wrapText(text, columns - labelColumns));
  return lines.map((line, index) => paint("bold", (index === 0 ? label : "").padEnd(labelColumns)) + line);
}

/** The checkout around the working directory was a project once. */
function removedTexts(env: NodeJS.ProcessEnv): readonly string[] {
  const server = findServer(env);
  const removed = server && findProjectAround({ ...server, files: removedFiles(server.files) }, ".");
  return removed ? [`${removed.name} was removed from this server. To bring it back: hotpush init`] : [];
}

function nameOf(deployment: DeploymentJson): string {
  const { id, ref, trigger } = deployment;
  return `deployment ${id}, ${branchOf(ref)} at ${commitText(deployment)} (${trigger})`;
}

type Running = NonNullable<StatusJson["running"]>;

function runsFor({ deployment: { startedAt, createdAt } }: Running): string {
  return `, for ${since(startedAt ?? createdAt)}`;
}

function stepText({ step }: Running): string {
  return step ? `step ${step.name}, for ${since(step.startedAt)}` : "before its first step";
}

function endingOf(deployment: DeploymentJson, { paint }: Terminal): string {
  const { finishedAt, durationMs, skipReason } = deployment;
  const took = durationMs === null ? "" : `, took ${formatDuration(durationMs)}`;
  const when = finishedAt === null ? "" : ` ${localTime(finishedAt)}`;
  const why = skipReason === null ? "" : `. ${skipReason}`;
  return `: ${stateText(deployment, paint)}${when}${took}${why}`;
}

function catchUpText({ intervalMs, lookedAt, failure }: StatusJson["catchUp"]): string {
  if (intervalMs === 0) return "off (CATCH_UP_INTERVAL is 0)";
  if (failure !== null) return `cannot look for ${failure}`;
  const last = lookedAt === null ? "once something was deployed" : `last ${since(lookedAt)} ago`;
  return `looks for missed pushes every ${formatDuration(intervalMs)}, ${last}`;
}

function secretTexts({ current, previous, advice }: StatusJson["secrets"]): readonly string[] {
  if (previous === null) return [secretText(current)];
  const texts = [`current: ${secretText(current)}`, `previous: ${secretText(previous)}`];
  return advice === null ? texts : [...texts, advice];
}

function secretText({ lastUsedAt, host, deliveryId, knownSince }: SecretJson): string {
  if (lastUsedAt === null) return `not used since ${localTime(knownSince)}`;
  const delivery = deliveryId === null ? "" : `, delivery ${deliveryId}`;
  return `last used ${since(lastUsedAt)} ago by ${host ?? "a git host"}${delivery}`;
}

/** The command has a line of its own, so that it can be copied. */
function frontTexts({ reachedAt, failure }: NonNullable<StatusJson["inbox"]>): readonly string[] {
  const reached = reachedAt === null ? "has never called" : `called ${since(reachedAt)} ago`;
  return failure === null ? [reached] : [`${reached}, and not now: ${failure}`, "See: hotpush doctor queue"];
}
