// The log of a deployment: takes the place of the page of it that the server has sent, and goes on as it grows.

import { cutLines, makeRow, plainStyle, plainText, readRuns, stepOf } from "./log-text.js";
import { lasted, refresh } from "./page.js";

const byId = (id) => document.getElementById(id);
const [section, body] = [byId("log"), byId("lines")];
const path = `/api/deployments/${section.dataset.id}`;

/** @type {import("./log-text.js").Line[]} */
const lines = [];
/** @type {{ attempt: number, name: string, startedAt: string, durationMs: number | null }[]} */
const steps = JSON.parse(section.dataset.steps);

start().catch(reportError);

async function start() {
  const isOver = section.dataset.over === "true";
  const bytes = await fetchLog();
  if (bytes !== null) showWhole(cutLines(bytes));
  for (const control of section.querySelectorAll("[data-js]")) control.removeAttribute("hidden");
  setRunning(!isOver);
  if (!goToNamed() && !isOver) setFollowing(true);
  showTail();
  section.dataset.ready = "";
  if (!isOver) await follow();
}

/** @returns null if it is refused */
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
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}

function showWhole(whole) {
  clear();
  byId("pages")?.remove();
  add(whole);
  const heads = named();
  const isShort = ({ rows }) => rows <= 60;
  // What failed or goes on, and after a success all that is short.
  for (const [index, part] of heads.entries())
    part.element.open = section.dataset.state === "succeeded" ? isShort(part) : index === heads.length - 1;
}

// Parts that fold, one for each step, with blocks of lines. Lines are elements from when they are first in sight: a hundred
// thousand at once would freeze the page. Those that are out of sight are not laid out (content-visibility).

const linesInBlock = 50;
/** @typedef {{ element: HTMLElement, from: number, to: number, isFilled: boolean }} Block */
/** @type {{ name: string | null, element: HTMLDetailsElement, from: number, rows: number, blocks: Block[] }[]} */
let parts = [];
/** @type {Map<Element, Block>} */
const blocks = new Map();
const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) fill(blocks.get(target));
  },
  { rootMargin: "800px 0px" },
);

function named() {
  return parts.filter(({ name }) => name !== null);
}

function clear() {
  sight.disconnect();
  blocks.clear();
  body.replaceChildren();
  [parts, lines.length] = [[], 0];
}

/** @param {Pick<import("./log-text.js").Line, "text" | "endByte" | "printedAt">[]} added */
function add(added) {
  const touched = new Set();
  for (const { text, endByte, printedAt } of added) {
    const before = lines.at(-1);
    const name = stepOf(text);
    const style = before && name === null ? styleAfter(before) : plainStyle;
    lines.push({ text, endByte, printedAt, style });
    if (name !== null || parts.length === 0) beginPart(name);
    if (name === null) touched.add(addRow(parts.at(-1)));
  }
  for (const { element, from, to } of touched) element.style.setProperty("--rows", String(to - from));
  showSteps();
}

function styleAfter({ text, style }) {
  return text.includes("\u001b") ? readRuns(text, style).end : style;
}

function beginPart(name) {
  const element = /** @type {HTMLDetailsElement} */ (
    document.createElement(name === null ? "div" : "details")
  );
  if (name !== null) {
    const head = element.appendChild(document.createElement("summary"));
    head.append(document.createElement("span"), document.createElement("time"));
    head.firstElementChild.textContent = name;
  }
  parts.push({ name, element, from: lines.length - 1, rows: 0, blocks: [] });
  body.append(element);
}

function addRow(part) {
  const index = lines.length - 1;
  let block = part.blocks.at(-1);
  if (!block || block.to - block.from >= linesInBlock) {
    const element = document.createElement("div");
    element.className = "block";
    // Lines that are printed now come without a blank moment.
    block = { element, from: index, to: index, isFilled: block?.isFilled ?? false };
    part.blocks.push(block);
    part.element.append(element);
    blocks.set(element, block);
    sight.observe(element);
  }
  block.to = index + 1;
  part.rows += 1;
  if (block.isFilled) block.element.append(makeRow(lines[index], index + 1, section.dataset.started));
  return block;
}

/** @param {Block} block */
function fill(block) {
  if (block.isFilled) return;
  block.isFilled = true;
  for (let index = block.from; index < block.to; index += 1)
    block.element.append(makeRow(lines[index], index + 1, section.dataset.started));
}

/** How long each step took, and how it ended. */
function showSteps() {
  const heads = named();
  const state = section.dataset.state;
  let next = 0;
  for (const [index, { name, element }] of heads.entries()) {
    const isLast = index === heads.length - 1;
    // By name: of a log that is too long, a part is left out, and steps with it.
    const at = steps.findIndex((one, place) => place >= next && one.name === name);
    if (at !== -1) next = at + 1;
    element.id = `step-${at === -1 ? index + 1 : at + 1}`;
    const isBusy = state === "running" || state === "queued";
    element.className = !isLast || state === "succeeded" ? "good" : isBusy ? "busy" : "bad";
    const time = element.querySelector("time");
    delete time.dataset.since;
    if (at === -1) continue;
    if (steps[at].durationMs !== null) time.textContent = lasted(steps[at].durationMs);
    else if (isLast && state === "running") time.dataset.since = steps[at].startedAt;
  }
}

// What the address names: a line, such as #L12, or a step.

function goToNamed() {
  const [, kind, number] = /^#(L|step-)(\d{1,9})$/.exec(location.hash) ?? [];
  if (kind === "L" && Number(number) <= lines.length) showLine(Number(number) - 1);
  const step = /** @type {HTMLDetailsElement | null} */ (kind === "step-" ? byId(`step-${number}`) : null);
  if (step) {
    step.open = true;
    step.scrollIntoView({ block: "start", behavior: "instant" });
  }
  return kind === "L" || step !== null;
}

function showLine(index) {
  const part = parts.findLast(({ from }) => from <= index);
  if (!part) return;
  part.element.open = true;
  setFollowing(false);
  for (const chosen of body.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
  const block = part.blocks.find(({ from, to }) => from <= index && index < to);
  if (block) fill(block);
  const row = block?.element.children[index - block.from] ?? part.element;
  row.classList.add("chosen");
  row.scrollIntoView({ block: "center", behavior: "instant" });
  // The lines around it get their true heights when they are filled, which may move it.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => row.scrollIntoView({ block: "center", behavior: "instant" })),
  );
}

addEventListener("hashchange", goToNamed);

// Search, through all lines, also those that are folded.

const [field, said] = [/** @type {HTMLInputElement} */ (byId("find")), byId("hits")];
let [hits, hitAt, seen, sought] = [/** @type {number[]} */ ([]), -1, 0, ""];

function search(by) {
  const wanted = field.value.toLowerCase();
  const isNew = wanted !== sought;
  if (isNew) [hits, hitAt, seen, sought] = [[], by > 0 ? -1 : 0, 0, wanted];
  for (; wanted !== "" && seen < lines.length; seen += 1)
    if (plainText(lines[seen].text).toLowerCase().includes(wanted)) hits.push(seen);
  hitAt = hits.length === 0 ? -1 : (hitAt + by + hits.length) % hits.length;
  for (const id of ["hits", "previous", "next"]) byId(id).hidden = wanted === "";
  said.textContent = hits.length === 0 ? "none" : `${hitAt + 1} of ${hits.length.toLocaleString("en-US")}`;
  if (hitAt !== -1) showLine(hits[hitAt]);
}

let typing = 0;
field.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, 80, 1);
});
field.addEventListener("keydown", ({ key, shiftKey }) => {
  if (key === "Enter") search(shiftKey ? -1 : 1);
});

// Stays at the end while the log grows, and lets go as soon as somebody scrolls up.

const [followButton, more] = [byId("follow"), byId("more")];
let [isFollowing, isRunning, missed, lastY, touchedMs] = [false, false, 0, scrollY, 0];

function distanceToEnd() {
  return section.getBoundingClientRect().bottom - innerHeight + 20;
}

function setFollowing(value) {
  isFollowing = value && isRunning;
  missed = 0;
  if (value) grown(0);
  else drawFollowing();
}

function setRunning(value) {
  isRunning = value;
  isFollowing &&= value;
  drawFollowing();
}

function drawFollowing() {
  followButton.hidden = !isRunning;
  followButton.setAttribute("aria-pressed", String(isFollowing));
  more.hidden = isFollowing || !isRunning || distanceToEnd() < 24;
  more.textContent =
    missed > 0 ? `↓ ${missed.toLocaleString("en-US")} new line${missed === 1 ? "" : "s"}` : "↓ To the end";
}

function grown(count) {
  if (!isFollowing) missed += count;
  else scrollBy({ top: Math.max(0, distanceToEnd()), behavior: "instant" });
  lastY = scrollY;
  drawFollowing();
}

for (const name of ["wheel", "touchmove", "keydown"])
  addEventListener(name, ({ timeStamp }) => (touchedMs = timeStamp), { passive: true });
addEventListener(
  "scroll",
  ({ timeStamp }) => {
    const [by, isNear] = [scrollY - lastY, distanceToEnd() < 24];
    lastY = scrollY;
    // Blocks that get their true heights move the page a little; a scroll bar that is dragged moves it far.
    const isMeant = timeStamp - touchedMs < 500 || by < -100;
    if (isFollowing && by < 0 && isMeant && !isNear) setFollowing(false);
    else if (!isFollowing && isRunning && by > 0 && isNear) setFollowing(true);
  },
  { passive: true },
);
new ResizeObserver(() => isFollowing && grown(0)).observe(body);
new ResizeObserver(() => section.style.setProperty("--bar", `${byId("bar").offsetHeight}px`)).observe(
  byId("bar"),
);

function showTimes() {
  const isShown = section.classList.toggle("with-times");
  byId("times").setAttribute("aria-pressed", String(isShown));
}

const clicks = {
  follow: () => setFollowing(!isFollowing),
  more: () => setFollowing(true),
  times: showTimes,
  next: () => search(1),
  previous: () => search(-1),
};
for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);

// What happens from the last line on. After a lost connection, or a sleep, it goes on there, so that no line is missing and
// none comes twice.

let waiting = [];
/** The server says something at least every 15 s; after a sleep, a connection that looks open may be dead. */
const [longestSilenceMs, longestSilenceAwakeMs, answersWithinMs] = [40_000, 20_000, 10_000];
let [heardMs, connection, endPause] = [0, new AbortController(), (_value) => {}];

/** The place in the log after the last line that came. */
function place() {
  return (waiting.at(-1) ?? lines.at(-1))?.endByte ?? 0;
}

async function follow() {
  setInterval(() => Date.now() - heardMs > longestSilenceMs && connection.abort(), 2_000);
  addEventListener("online", tryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && Date.now() - heardMs > longestSilenceAwakeMs) tryNow();
  });
  for (let pauseMs = 500; ; pauseMs = Math.min(10_000, pauseMs * 2)) {
    try {
      heardMs = Date.now() - longestSilenceMs + answersWithinMs;
      connection = new AbortController();
      const response = await fetch(`${path}/events?from=${place()}`, { signal: connection.signal });
      if (response.status === 401) return location.reload();
      if (response.status === 404) return finish();
      if (!response.ok) throw new Error(`status ${response.status}`);
      showConnection(true);
      pauseMs = 250;
      if (await readEvents(response.body)) return finish();
    } catch {
      showConnection(false);
    }
    await new Promise((resolve) => {
      endPause = resolve;
      setTimeout(resolve, pauseMs);
    });
  }
}

function tryNow() {
  connection.abort();
  endPause(null);
}

/** @returns {Promise<boolean>} whether the server said that this was all */
async function readEvents(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    heardMs = Date.now();
    const { value, done } = await reader.read();
    if (done) return false;
    const messages = (rest + value).split("\n\n");
    rest = messages.pop() ?? "";
    for (const message of messages) {
      if (/^event: end$/m.test(message)) return true;
      const [, data] = /^data: (.*)$/m.exec(message) ?? [];
      if (data) take(JSON.parse(data));
    }
  }
}

function take({ event, line, endByte, printedAt, step, deployment }) {
  if (event === "line" && endByte > place()) {
    waiting.push({ text: line, endByte, printedAt });
    // For the next frame: a script may print thousands at once. A tab in the background has no frames.
    if (waiting.length > 1) return;
    if (document.visibilityState === "visible") requestAnimationFrame(addWaiting);
    else setTimeout(addWaiting, 500);
  } else if (event === "step") {
    const index = steps.findIndex((one) => one.attempt === step.attempt && one.startedAt === step.startedAt);
    if (index === -1) steps.push(step);
    else if (step.durationMs !== null) steps[index] = step;
    showSteps();
  } else if (event === "deployment") {
    const { state, startedAt, exitCode } = deployment;
    Object.assign(section.dataset, { state, started: startedAt ?? "", exit: exitCode ?? "" });
    showSteps();
  } else if (event === "restarted") {
    waiting = [];
    clear();
  }
}

function addWaiting() {
  const added = waiting;
  waiting = [];
  if (added.length === 0) return;
  const known = named().length;
  add(added);
  const heads = named();
  if (heads.length > known) {
    heads.at(-1).element.open = true;
    // A reader who follows sees the step that runs; any other keeps the lines in front of them.
    if (isFollowing) for (const { element } of heads.slice(Math.max(0, known - 1), -1)) element.open = false;
    byId("said").textContent = `${heads.at(-1).name} began`;
  }
  grown(added.length);
  showTail();
}

function finish() {
  addWaiting();
  const last = named().at(-1);
  if (last && section.dataset.state !== "succeeded") last.element.open = true;
  grown(0);
  setRunning(false);
  section.dataset.over = "true";
  showTail();
  byId("said").textContent = `The log ends: ${section.dataset.state.replace("_", " ")}`;
  refresh().catch(reportError);
}

function showConnection(isConnected) {
  section.dataset.connected = String(isConnected);
  byId("offline").hidden = isConnected;
  showTail();
}

function showTail() {
  const { connected, over, exit } = section.dataset;
  const isEmpty = lines.length === 0;
  const end = isEmpty
    ? "It printed nothing."
    : `The log ends here${exit === "" ? "." : `: exit code ${exit}`}`;
  const now = over === "true" ? end : isEmpty ? "It has printed nothing yet." : "";
  byId("tail").textContent =
    connected === "false" ? "No connection. The log goes on when there is one." : now;
}
