import type { Deployment } from "../src/deployments/deployment.ts";
import type { Step } from "./deployment-steps.ts";
import type { Pushed } from "./developer.ts";
import { paint } from "./paint.ts";
import { stateOf } from "./record.ts";
import { print } from "./screen.ts";
import { fit, seconds, table, widthColumns, wrap } from "./text.ts";

const margin = "   ";
const roomColumns = widthColumns - margin.length;

export function chapter(number: number, title: string): void {
  print();
  print(`${paint(["bold", "cyan"], String(number))}  ${paint("bold", title)}`);
  print();
}

export function paragraph(...sentences: readonly string[]): void {
  for (const line of wrap(sentences.join(" "), roomColumns)) print(`${margin}${line}`);
  print();
}

/** Names with their values, one a line. */
export function facts(lines: Readonly<Record<string, string>>): void {
  for (const [name, fact] of namesPadded(lines)) print(`${margin}${paint("dim", name)}  ${fact}`);
  print();
}

/** Answers, each with its source. */
export function quote(lines: Readonly<Record<string, string>>): void {
  for (const [name, words] of namesPadded(lines))
    print(`${margin}${name}  ${paint(["bold", "green"], words)}`);
  print();
}

/** A command and its output. */
export function command(line: string, output: readonly string[]): void {
  print(`${margin}${paint("bold", `$ ${line}`)}`);
  for (const text of output) print(`${margin}  ${paint("dim", fit(text, roomColumns - 2))}`);
  print();
}

/** A step of a deployment: its name, its duration and its output. */
export function step({ name, output, durationMs }: Step): void {
  const duration = durationMs === null ? "" : seconds(durationMs).padStart(9);
  const heading = fit(`==> ${name}`, roomColumns - duration.length).padEnd(roomColumns - duration.length);
  print(`${margin}${paint("cyan", duration ? heading : heading.trimEnd())}${paint("dim", duration)}`);
  for (const line of output) print(`${margin}    ${paint("dim", fit(line, roomColumns - 4))}`);
}

/** An empty line after the last step. */
export function end(): void {
  print();
}

/** A refusal: its status, its title, and the help text. */
export function refusal(status: number, title: string, detail: string): void {
  print(`${margin}${paint(["bold", "yellow"], `${status}  ${title}`)}`);
  for (const line of wrap(detail, roomColumns - 5)) print(`${margin}     ${line}`);
  print();
}

/** A table of all deployments, with the versions that were pushed. */
export function deployments(record: readonly Deployment[], pushes: readonly Pushed[]): void {
  const rows = record.map((deployment) => [
    String(deployment.id),
    String(pushes.find(({ commit }) => commit === deployment.commit)?.version ?? "?"),
    deployment.commit.slice(0, 7),
    stateOf(deployment),
    durationOf(deployment),
  ]);
  const [heading, ...lines] = table(
    [["Deployment", "Version", "Commit", "State", "Duration"], ...rows],
    [0, 1, 4],
  );
  print(`${margin}${paint("dim", heading ?? "")}`);
  for (const line of lines) print(`${margin}${line}`);
  print();
}

/** The result of the whole tour. */
export function verdict(text: string): void {
  print(`${margin}${paint(["bold", "green"], text)}`);
  print();
}

function durationOf({ startedAtMs, finishedAtMs }: Deployment): string {
  return startedAtMs === null || finishedAtMs === null ? "did not run" : seconds(finishedAtMs - startedAtMs);
}

function namesPadded(lines: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  const columns = Math.max(...Object.keys(lines).map((name) => name.length));
  return Object.entries(lines).map(([name, text]) => [name.padEnd(columns), text]);
}
