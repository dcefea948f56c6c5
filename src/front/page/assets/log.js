// The log of a deployment: all of it, and then what follows. Or that of the containers of a service, which begins with its last
// lines and has no end.

import { cutLines, makeRow, plainText, stepOf } from "./log-text.js";
import { lasted, refresh } from "./page.js";

const byId = (id) => document.getElementById(id);
const [section, body] = [byId("log"), byId("lines")];

/** @type {import("./log-text.js").Line[]} */
const lines = [];

start().catch(reportError);

async function start() {
  const isOver = section.dataset.ended !== "";
  const bytes = await (section.dataset.log ? fetchLog(section.dataset.log) : new Uint8Array());
  if (bytes !== null) await showWhole(bytes);
  for (const control of section.querySelectorAll("[data-js]")) control.removeAttribute("hidden");
  isRunning = !isOver;
  setFollowing(!goToNamed());
  showTail();
  section.dataset.ready = "";
  if (!isOver) follow();
}

/** @returns null if it is refused */
async function fetchLog(path) {
  for (;;) {
    try {
      const response = await fetch(path);
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

const frameMs = 8;

/** Some lines at a time, so that no frame waits for a long log; only what is whole takes the place of its last page. */
async function showWhole(bytes) {
  let startMs = performance.now();
  for (const { lines: added, endByte } of cutLines(bytes)) {
    add(added);
    place = endByte;
    if (performance.now() - startMs < frameMs) continue;
    await new Promise((resolve) => setTimeout(resolve));
    startMs = performance.now();
  }
  // What failed or goes on, and after a success all that is short.
  for (const [index, { element, from }] of heads.entries()) {
    const next = heads[index + 1];
    const isShort = (next?.from ?? lines.length) - from <= 60;
    element.open = section.dataset.state === "succeeded" ? isShort : !next;
  }
  body.replaceChildren(...parts.map(({ element }) => element));
  isShown = true;
}

// Parts that fold, one for each step, with blocks of lines. Lines are elements from when they are first in sight: a hundred
// thousand at once would freeze the page. Those that are out of sight are not laid out (content-visibility).

const linesInBlock = 100;
/** @typedef {{ element: HTMLElement, from: number, to: number, isFilled: boolean }} Block */
/** @type {{ name: string | null, element: HTMLDetailsElement, from: number, block?: Block }[]} */
const parts = [];
/** Those of the parts that have a name. */
const heads = /** @type {typeof parts} */ ([]);
/** Whether the parts are in the document. */
let isShown = false;
/** @type {Map<Element, Block>} */
const blocks = new Map();
const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) fill(blocks.get(target));
  },
  { rootMargin: "800px 0px" },
);

/** @param {import("./log-text.js").Line[]} added */
function add(added) {
  const touched = new Set();
  for (const line of added) {
    const name = stepOf(line.text);
    lines.push(line);
    if (name !== null || parts.length === 0) beginPart(name);
    if (name === null) touched.add(addRow(parts.at(-1)));
  }
  for (const { element, from, to } of touched) element.style.setProperty("--rows", String(to - from));
  showSteps();
}

function beginPart(name) {
  const element = /** @type {HTMLDetailsElement} */ (
    document.createElement(name === null ? "div" : "details")
  );
  const part = { name, element, from: lines.length - 1 };
  parts.push(part);
  if (isShown) body.append(element);
  if (name === null) return;
  heads.push(part);
  const head = element.appendChild(document.createElement("summary"));
  head.append(...["span", "time", "i"].map((one) => document.createElement(one)));
  head.firstElementChild.textContent = name;
  head.lastElementChild.ariaHidden = "true";
}

function addRow(part) {
  if (!part.block || part.block.to - part.block.from >= linesInBlock) {
    const element = document.createElement("div");
    element.className = "block";
    const from = lines.length - 1;
    // Lines that are printed now come without a blank moment.
    part.block = { element, from, to: from, isFilled: part.block?.isFilled ?? false };
    part.element.append(element);
    blocks.set(element, part.block);
    sight.observe(element);
  }
  part.block.to = lines.length;
  if (part.block.isFilled) fill(part.block);
  return part.block;
}

/** @param {Block} block */
function fill(block) {
  block.isFilled = true;
  for (let index = block.from + block.element.children.length; index < block.to; index += 1)
    block.element.append(makeRow(lines[index], index + 1, section.dataset.started));
}

const marks = { good: "✓", bad: "✕", busy: "●" };

/** How long each step took, and how it ended. */
function showSteps() {
  const { state, ended } = section.dataset;
  const isBusy = state === "running" || state === "queued";
  for (const [index, { element, from }] of heads.entries()) {
    const next = heads[index + 1];
    element.id = `step-${index + 1}`;
    const mark = element.querySelector("i");
    mark.className = next || state === "succeeded" ? "good" : isBusy ? "busy" : "bad";
    mark.textContent = marks[mark.className];
    const [began, until] = [lines[from].printedAt, next ? lines[next.from].printedAt : ended];
    const time = element.querySelector("time");
    if (until && began) time.textContent = lasted(Math.max(0, Date.parse(until) - Date.parse(began)));
    if (until || !began) delete time.dataset.since;
    else time.dataset.since = began;
  }
}

// What the address names: a line, such as #L12, or a step.

function goToNamed() {
  const [, kind, number] = /^#(L|step-)(\d{1,9})$/.exec(location.hash) ?? [];
  if (kind === "L" && Number(number) <= lines.length) showLine(Number(number) - 1);
  const step = /** @type {HTMLDetailsElement | null} */ (kind === "step-" ? byId(`step-${number}`) : null);
  if (step) {
    step.open = true;
    setFollowing(false);
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
  for (const block of blocks.values()) if (block.from <= index && index < block.to) fill(block);
  const row = byId(`L${index + 1}`) ?? part.element;
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
let [hits, hitAt, sought] = [/** @type {number[]} */ ([]), -1, ""];

function search(by) {
  const wanted = field.value.toLowerCase();
  if (wanted !== sought) [hitAt, sought] = [by > 0 ? -1 : 0, wanted];
  const isHit = ({ text }) => wanted !== "" && plainText(text).toLowerCase().includes(wanted);
  hits = lines.flatMap((line, index) => (isHit(line) ? [index] : []));
  hitAt = hits.length === 0 ? -1 : (hitAt + by + hits.length) % hits.length;
  for (const id of ["hits", "previous", "next"]) byId(id).hidden = wanted === "";
  said.textContent = hits.length === 0 ? "none" : `${hitAt + 1} of ${hits.length.toLocaleString("en-US")}`;
  if (hitAt !== -1) showLine(hits[hitAt]);
}

field.addEventListener("input", () => search(1));
field.addEventListener("keydown", ({ key, shiftKey }) => {
  if (key === "Enter") search(shiftKey ? -1 : 1);
});

// Stays at the end while the log grows, and lets go as soon as somebody scrolls up.

const followButton = byId("follow");
let [isFollowing, isRunning, lastY, touchedMs] = [false, false, scrollY, 0];

function distanceToEnd() {
  return section.getBoundingClientRect().bottom - innerHeight + 20;
}

function setFollowing(value) {
  isFollowing = value && isRunning;
  stayAtEnd();
  followButton.hidden = !isRunning;
  followButton.setAttribute("aria-pressed", String(isFollowing));
}

function stayAtEnd() {
  if (isFollowing) scrollBy({ top: Math.max(0, distanceToEnd()), behavior: "instant" });
  lastY = scrollY;
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
new ResizeObserver(stayAtEnd).observe(body);
new ResizeObserver(() => section.style.setProperty("--bar", `${byId("bar").offsetHeight}px`)).observe(
  byId("bar"),
);

const clicks = {
  follow: () => setFollowing(!isFollowing),
  times: () => byId("times").setAttribute("aria-pressed", String(section.classList.toggle("with-times"))),
  next: () => search(1),
  previous: () => search(-1),
};
for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);

// What happens from the last line on. After a lost connection, or a sleep, it goes on there, so that no line is missing and
// none comes twice.

let waiting = [];
/** Where the reader goes on. */
let place = /** @type {number | string | undefined} */ (undefined);
/** The time of each container's last line, and as it was when the connection began. */
const lastOf = /** @type {Map<string, string>} */ (new Map());
let known = new Map(lastOf);
let source = /** @type {EventSource | null} */ (null);
let awakeMs = Date.now();
const [lookMs, sleptMs, againMs, overlapMs] = [2_000, 20_000, 1_000, 10_000];

function follow() {
  connect();
  addEventListener("online", connect);
  setInterval(() => {
    // The clock has jumped, so this machine slept: its connection looks open and may be dead.
    if (Date.now() - awakeMs > sleptMs) connect();
    awakeMs = Date.now();
  }, lookMs);
}

function connect() {
  source?.close();
  if (!isRunning) return;
  known = new Map(lastOf);
  // Containers are read side by side, so one may be behind: what is known comes twice, and is left out.
  const overlap = () => new Date(Date.parse(String(place)) - overlapMs).toISOString();
  const from = typeof place === "string" ? overlap() : place;
  const query = from === undefined ? "" : `?${section.dataset.log ? "from" : "since"}=${from}`;
  source = new EventSource(section.dataset.events + query);
  source.addEventListener("open", () => showConnection(true));
  source.addEventListener("message", ({ data }) => take(JSON.parse(data)));
  source.addEventListener("error", ({ target }) => {
    showConnection(false);
    if (source !== target) return;
    source.close();
    setTimeout(connect, againMs);
  });
}

function take({ event, line, endByte, printedAt = null, deployment, container, state, detail }) {
  if (event !== "deployment") {
    if (container && event === "line") {
      if (printedAt <= (known.get(container) ?? "")) return;
      lastOf.set(container, printedAt);
    }
    place = endByte ?? printedAt ?? place;
    const shown = event === "line" ? `| ${line.slice(line.lastIndexOf("\r") + 1)}` : "";
    const text = container ? `${container} ${shown || (detail ?? `has ${state}`)}` : line;
    waiting.push({ text, printedAt });
    // For the next frame: a script may print thousands at once. A tab in the background has no frames.
    if (waiting.length > 1) return;
    if (document.visibilityState === "visible") requestAnimationFrame(addWaiting);
    else setTimeout(addWaiting, 500);
  } else {
    const { state, startedAt, finishedAt, exitCode } = deployment;
    Object.assign(section.dataset, { state, started: startedAt ?? "", exit: exitCode ?? "" });
    const isOver = finishedAt !== null && state !== "queued" && state !== "running";
    section.dataset.ended = isOver ? finishedAt : "";
    if (isOver) finish();
    else showSteps();
  }
}

const mostServiceLines = 100_000;

function addWaiting() {
  const added = waiting;
  waiting = [];
  if (added.length === 0) return;
  const known = heads.length;
  add(added);
  // It begins with its last lines again: no tab can keep them all.
  if (!section.dataset.log && lines.length > mostServiceLines) return location.reload();
  if (heads.length > known) {
    heads.at(-1).element.open = true;
    // A reader who follows sees the step that runs; any other keeps the lines in front of them.
    if (isFollowing) for (const { element } of heads.slice(Math.max(0, known - 1), -1)) element.open = false;
  }
  stayAtEnd();
  showTail();
}

function finish() {
  source?.close();
  addWaiting();
  showSteps();
  const last = heads.at(-1);
  if (last && section.dataset.state !== "succeeded") last.element.open = true;
  stayAtEnd();
  isRunning = false;
  setFollowing(false);
  showConnection(true);
  refresh().catch(reportError);
}

function showConnection(isConnected) {
  section.dataset.connected = String(isConnected);
  byId("offline").hidden = isConnected;
  showTail();
}

function showTail() {
  const { connected, ended, exit } = section.dataset;
  const isEmpty = lines.length === 0;
  const end = isEmpty
    ? "It printed nothing, or its log was removed: those of the last 50 are kept."
    : `The log ends here${exit === "" ? "." : `: exit code ${exit}`}`;
  const now = ended !== "" ? end : isEmpty ? "It has printed nothing yet." : "";
  byId("tail").textContent =
    connected === "false" ? "No connection. The log goes on when there is one." : now;
}
