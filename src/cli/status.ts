import type { Command } from "commander";
import { formatDuration } from "../config/duration.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import type { SecretJson, SecretsJson, StatusJson } from "../control/status.ts";
import { wrapText } from "../platform/terminal/layout.ts";
import type { Terminal } from "../platform/terminal/terminal.ts";
import { type CommandContext, newCommand } from "./command.ts";
import { branchOf, commitText, localTime, originText, since, stateText } from "./deployment-text.ts";
import { accessService } from "./service-access.ts";

/** `hotpush status`: its exit code is 0 if the service is healthy. */
export function makeStatusCommand({ env, finish }: CommandContext): Command {
  const description =
    "Show what is running, what is waiting, how the last deployment of each branch ended, and the health of the service. The exit code is 0 if it is healthy.";
  return newCommand("status", description, [
    "hotpush status          the status for a person",
    "hotpush status --json   the same for a program",
  ])
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json }: { readonly json?: boolean }) => {
      const { get, terminal } = accessService(env);
      const status = await get<StatusJson>("/status");
      terminal.print(...(json ? [JSON.stringify(status)] : statusLines(status, terminal)));
      finish(status.health.isHealthy ? 0 : 1);
    });
}

const labelColumns = 11;

/** The status as lines for a person, none longer than the terminal is wide. */
function statusLines(status: StatusJson, terminal: Terminal): readonly string[] {
  const { version, startedAt, waiting, last, health, catchUp, secrets } = status;
  const { paint } = terminal;
  const rows: readonly (readonly [label: string, texts: readonly string[]])[] = [
    ["Now", runningTexts(status, terminal)],
    ["Waiting", waiting.flatMap((one) => [named(one), ...origin(one, terminal)])],
    ["Last", last.flatMap((one) => [lastText(one, terminal), ...origin(one, terminal)])],
    ["Branch", [branchText(status)]],
    ["Health", [health.isHealthy ? paint("green", "ok") : paint("red", health.detail ?? "")]],
    ["Catch-up", [catchUpText(catchUp)]],
    ["Secret", secretTexts(secrets)],
  ];
  return [
    `Hotpush ${version}, running for ${since(startedAt)}, since ${localTime(startedAt)}`,
    "",
    ...rows.flatMap(([label, texts]) => labelled(label, texts, terminal)),
  ];
}

function labelled(label: string, texts: readonly string[], { columns, paint }: Terminal): readonly string[] {
  const given = texts.length === 0 ? ["nothing"] : texts;
  const lines = given.flatMap((text) => wrapText(text, columns - labelColumns));
  return lines.map((line, index) =>
    index === 0
      ? `${paint("bold", label)}${" ".repeat(labelColumns - label.length)}${line}`
      : " ".repeat(labelColumns) + line,
  );
}

function runningTexts({ running }: StatusJson, terminal: Terminal): readonly string[] {
  if (running === null) return ["nothing runs"];
  const { deployment, step } = running;
  const text = `${named(deployment)}, for ${since(deployment.startedAt ?? deployment.createdAt)}`;
  const doing = step ? `step ${step.name}, for ${since(step.startedAt)}` : "before its first step";
  return [text, doing, ...origin(deployment, terminal)];
}

function lastText(deployment: DeploymentJson, { paint }: Terminal): string {
  const { finishedAt, durationMs } = deployment;
  const took = durationMs === null ? "" : `, took ${formatDuration(durationMs)}`;
  const when = finishedAt === null ? "" : ` ${localTime(finishedAt)}`;
  return `${named(deployment)}: ${stateText(deployment, paint)}${when}${took}`;
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
