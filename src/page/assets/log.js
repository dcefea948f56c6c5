// The log of a deployment: takes the place of the end of it that the server has sent, and goes on as it grows.

import { plainStyle, readRuns } from "./log-ansi.js";
import { cutLines, stepOf } from "./log-lines.js";
import { follow } from "./log-stream.js";
import { createView } from "./log-view.js";
import { refresh } from "./page.js";

const section = document.getElementById("log");
const pauseMs = 2_000;
const path = `/api/deployments/${section.dataset.id}`;

/** @type {import("./log-sections.js").Log} */
const log = {
  lines: [],
  steps: JSON.parse(section.dataset.steps),
  state: section.dataset.state,
  startedMs: Date.parse(section.dataset.started) || null,
};
const { sections, following, search, connect, goToNamed } = createView(section, log);
let waiting = [];

start().catch(reportError);

async function start() {
  const isOver = section.dataset.over === "true";
  await readSoFar();
  connect();
  following.setRunning(!isOver);
  if (!goToNamed() && !isOver) following.set(true);
  showTail();
  section.dataset.ready = "";
  if (isOver) return;
  const reader = { place, onEvent: take, onConnection: showConnection, onEnd: finish };
  await follow({ path: `${path}/events`, ...reader });
}

/** Takes the place of what the server has sent, which stays until the whole log is here. */
async function readSoFar() {
  const bytes = await fetchLog();
  if (bytes === null) return;
  const lines = cutLines(bytes);
  reset();
  document.getElementById("pages")?.remove();
  add(lines);
  sections.openSome();
}

/** As bytes, which is many times faster than as events. @returns null if it is refused */
async function fetchLog() {
  for (;;) {
    try {
      const response = await fetch(`${path}/log?format=timed`);
      if (response.status === 401) location.reload();
      if (response.status >= 400 && response.status < 500) return null;
      const bytes = response.ok ? new Uint8Array(await response.arrayBuffer()) : null;
      showConnection(bytes !== null);
      if (bytes !== null) return bytes;
    } catch {
      showConnection(false);
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

function reset() {
  waiting = [];
  log.lines.length = 0;
  sections.clear();
  search.clear();
}

/** The byte after the last line that came. */
function place() {
  return (waiting.at(-1) ?? log.lines.at(-1))?.endByte ?? 0;
}

/** @param {{ text: string, endByte: number, printedMs: number | null }[]} lines */
function add(lines) {
  const from = log.lines.length;
  for (const line of lines) {
    const last = log.lines.at(-1);
    const style = last && stepOf(line.text) === null ? styleAfter(last) : plainStyle;
    log.lines.push({ ...line, style });
  }
  sections.append(from);
}

function styleAfter({ text, style }) {
  return text.includes("\u001b") ? readRuns(text, style).end : style;
}

function take(event) {
  if (event.event === "line") takeLine(event);
  else if (event.event === "step") takeStep(event.step);
  else if (event.event === "deployment") takeState(event.deployment);
  else if (event.event === "restarted") reset();
}

/** It waits for the next frame: a script may print thousands at once. */
function takeLine({ line, endByte, printedAt }) {
  if (endByte <= place()) return;
  waiting.push({ text: line, endByte, printedMs: printedAt === null ? null : Date.parse(printedAt) });
  if (waiting.length > 1) return;
  // A tab in the background has no frames.
  if (document.visibilityState === "visible") requestAnimationFrame(addWaiting);
  else setTimeout(addWaiting, 500);
}

function addWaiting() {
  const lines = waiting;
  waiting = [];
  if (lines.length === 0) return;
  const known = sections.named().length;
  add(lines);
  if (sections.named().length > known) beginStep(known);
  search.take();
  following.grown(lines.length);
  showTail();
}

function beginStep(known) {
  const heads = sections.named();
  const current = heads.at(-1);
  current.element.open = true;
  // A reader who follows sees the step that runs; any other keeps the lines in front of them.
  if (following.isOn())
    for (const { element } of heads.slice(Math.max(0, known - 1), -1)) element.open = false;
  say(`${stepOf(log.lines[current.from].text)} began`);
}

function takeStep(step) {
  const isSame = (one) => one.attempt === step.attempt && one.startedAt === step.startedAt;
  const index = log.steps.findIndex(isSame);
  if (index === -1) log.steps.push(step);
  else if (step.durationMs !== null) log.steps[index] = step;
  sections.showSteps();
}

function takeState({ state, startedAt, exitCode }) {
  log.state = state;
  section.dataset.exit = String(exitCode ?? "");
  log.startedMs = Date.parse(startedAt ?? "") || null;
  sections.showSteps();
}

function finish() {
  addWaiting();
  const last = sections.named().at(-1);
  if (last && log.state !== "succeeded") last.element.open = true;
  following.grown(0);
  following.setRunning(false);
  section.dataset.over = "true";
  showTail();
  say(`The log ends: ${log.state.replace("_", " ")}`);
  refresh().catch(reportError);
}

function showConnection(isConnected) {
  section.dataset.connected = String(isConnected);
  document.getElementById("offline").hidden = isConnected;
  showTail();
}

function showTail() {
  document.getElementById("tail").textContent = tailText();
}

function tailText() {
  const isEmpty = log.lines.length === 0;
  if (section.dataset.connected === "false") return "No connection. The log goes on when there is one.";
  if (section.dataset.over === "true") return isEmpty ? "It printed nothing." : endText(section.dataset.exit);
  return isEmpty ? "It has printed nothing yet." : "";
}

function endText(exitCode) {
  return exitCode === "" ? "The log ends here." : `The log ends here: exit code ${exitCode}`;
}

function say(text) {
  document.getElementById("said").textContent = text;
}
