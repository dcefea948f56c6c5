import { formatDuration } from "../config/duration.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import type { SecretJson, SecretsJson } from "../control/secrets.ts";
import type { CatchUpJson, StatusJson } from "../control/status.ts";
import type { Terminal } from "../platform/terminal/terminal.ts";
import { wrapText } from "../platform/terminal/wrap.ts";
import { commitText, originText } from "./terminal/origin.ts";
import { branchOf, localTime, since, states } from "./terminal/words.ts";

const labelColumns = 11;

/** The status as lines for a person, none longer than the terminal is wide. */
export function statusLines(status: StatusJson, terminal: Terminal): readonly string[] {
  const { version, startedAt, health, catchUp, secrets } = status;
  const healthText = health.isHealthy
    ? terminal.paint("green", "ok")
    : terminal.paint("red", health.detail ?? "");
  return [
    `Hotpush ${version}, running for ${since(startedAt)}, since ${localTime(startedAt)}`,
    "",
    ...labelled("Now", runningTexts(status, terminal), terminal),
    ...labelled(
      "Waiting",
      status.waiting.flatMap((one) => [named(one), ...origin(one, terminal)]),
      terminal,
    ),
    ...labelled(
      "Last",
      status.last.flatMap((one) => [lastText(one, terminal), ...origin(one, terminal)]),
      terminal,
    ),
    ...labelled("Branch", [branchText(status)], terminal),
    ...labelled("Health", [healthText], terminal),
    ...labelled("Catch-up", catchUpTexts(catchUp), terminal),
    ...labelled("Secret", secretTexts(secrets), terminal),
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
  const { state, finishedAt, durationMs } = deployment;
  const { text, colour } = states[state];
  const took = durationMs === null ? "" : `, took ${formatDuration(durationMs)}`;
  const when = finishedAt === null ? "" : ` ${localTime(finishedAt)}`;
  return `${named(deployment)}: ${paint(colour, text)}${when}${took}`;
}

function named(deployment: DeploymentJson): string {
  const { id, ref, trigger } = deployment;
  return `deployment ${id}, ${branchOf(ref)} at ${commitText(deployment)} (${trigger})`;
}

/** A line on its commit and the people behind it, if they are known. */
function origin(deployment: DeploymentJson, { columns }: Terminal): readonly string[] {
  const text = originText(deployment, columns - labelColumns);
  return text === "" ? [] : [text];
}

function branchText({ branches }: StatusJson): string {
  return branches.length === 1 ? `${branches[0]} only (BRANCH)` : branches.join(" and ");
}

function catchUpTexts({ intervalMs, lookedAt, failure }: CatchUpJson): readonly string[] {
  if (intervalMs === 0) return ["off (CATCH_UP_INTERVAL is 0)"];
  const every = `looks for missed pushes every ${formatDuration(intervalMs)}`;
  if (failure !== null) return [`cannot look for missed pushes: ${failure}`];
  return [
    lookedAt === null ? `${every}, once something was deployed` : `${every}, last ${since(lookedAt)} ago`,
  ];
}

function secretTexts({ current, previous, advice }: SecretsJson): readonly string[] {
  if (previous === null) return [used("last used", current)];
  return [
    used("current: last used", current),
    used("previous: last used", previous),
    ...(advice ? [advice] : []),
  ];
}

function used(what: string, { lastUsedAt, host, deliveryId, knownSince }: SecretJson): string {
  if (lastUsedAt === null) return `${what.replace("last used", "not used")} since ${localTime(knownSince)}`;
  const delivery = deliveryId === null ? "" : `, delivery ${deliveryId}`;
  return `${what} ${since(lastUsedAt)} ago by ${host ?? "a git host"}${delivery}`;
}
