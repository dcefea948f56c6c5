// A log as text: its bytes as lines, and a line as an element. Everything that a script printed becomes text nodes.

/**
 * A line as it was printed.
 * @typedef {object} Line
 * @property {string} text
 * @property {number} endByte the place in the log at which the next line begins
 * @property {string | null} printedAt
 * @property {Style} style how it begins, because of the colours that earlier lines have left on
 */

/**
 * How text looks from some place on. Never changed, so that lines can share one.
 * @typedef {{ readonly ink?: string, readonly paper?: string, readonly [effect: number]: boolean }} Style
 */

const timed = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z[ +]/;
const timeLength = 25;

/**
 * Cuts the bytes of a log, which are lines `<time> <text>` (src/runner/log-file.ts).
 * @param {Uint8Array} bytes
 * @returns {{ text: string, endByte: number, printedAt: string | null }[]}
 */
export function cutLines(bytes) {
  // Decoded at once, which is many times faster than line by line.
  const texts = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).split("\n");
  let end = 0;
  return texts.slice(0, -1).map((whole) => {
    end = bytes.indexOf(0x0a, end) + 1;
    const isTimed = timed.test(whole);
    const printedAt = isTimed ? whole.slice(0, timeLength - 1) : null;
    return { text: whole.slice(isTimed ? timeLength : 0).replace(/\r$/, ""), endByte: end, printedAt };
  });
}

/** The name of the step that a line announces, or null. */
export function stepOf(text) {
  return text.startsWith("==> ") ? (/^==> (\S.{0,199})$/.exec(text.trimEnd())?.[1] ?? null) : null;
}

/** @type {Style} */
export const plainStyle = Object.freeze({});

/** What follows an escape character (ECMA-48): a control sequence, a text for the terminal, or a short command. */
const command = /^(?:\[([0-?]*)[ -/]*([@-~])|\]\P{Cc}*\p{Cc}?|[ -/]*[0-~])/u;
/** Any control character but the tab. */
const control = /[^\P{Cc}\t]/gu;
const hasControl = /[^\P{Cc}\t]/u;

/** What is left of a line on a terminal, as text alone. */
export function plainText(text) {
  const { runs } = readRuns(text, plainStyle);
  return runs.map((run) => run.text).join("");
}

/**
 * Cuts a line into runs that look alike.
 * @param {string} text
 * @param {Style} style how it begins
 * @returns {{ runs: { text: string, style: Style }[], end: Style }}
 */
export function readRuns(text, style) {
  if (!hasControl.test(text)) return { runs: [{ text, style }], end: style };
  let [runs, now] = [[], style];
  const pieces = text.replace(/(?<!\r)\r+$/, "").split("\u001b");
  for (const [index, piece] of pieces.entries()) {
    const found = index === 0 ? null : command.exec(piece);
    if (found?.[2] === "m") now = changed(now, found[1].split(/[;:]/).map(Number));
    const rest = piece.slice(found?.[0].length ?? 0);
    const returned = rest.lastIndexOf("\r");
    // A carriage return goes back to the beginning: what is written then takes the place of what was there.
    if (returned !== -1) runs = [];
    const shown = rest.slice(returned + 1).replace(control, "");
    if (shown !== "") runs.push({ text: shown, style: now });
  }
  return { runs, end: now };
}

const inks =
  "#8d909b #ff8787 #8ce99a #ffe066 #91c7ff #e5a3f5 #7fe0e8 #dedcd6 #a2a4ae #ffa8a8 #b2f2bb #ffec99 #bcdcff #f0c4fa #aef0f5 #ffffff";
const papers =
  "#33353e #8f2d2d #2c6b39 #7a6415 #24548a #6e3580 #1d6a70 #8d909b #555863 #a83a3a #36804a #927a1e #30659f #804294 #287b82 #dedcd6";
const [inkColours, paperColours] = [inks, papers].map((colours) => colours.split(" "));

/** Applies "select graphic rendition" (ECMA-48, 8.3.117), with the colours of xterm. */
function changed(style, codes) {
  let now = style;
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index];
    const [tens, ones] = [Math.floor(code / 10), code % 10];
    const of = { 3: ["ink", inkColours[ones]], 4: ["paper", paperColours[ones]] }[tens];
    const bright = { 9: ["ink", inkColours[ones + 8]], 10: ["paper", paperColours[ones + 8]] }[tens];
    if (code === 0) now = plainStyle;
    else if (code < 10) now = { ...now, [code]: true };
    else if (code === 22) now = { ...now, 1: false, 2: false };
    else if (tens === 2) now = { ...now, [ones]: false };
    else if (of && ones === 8) {
      const { colour, used } = longColour(codes.slice(index + 1), tens === 3 ? inkColours : paperColours);
      now = { ...now, [of[0]]: colour };
      index += used;
    } else if (of) now = { ...now, [of[0]]: ones === 9 ? undefined : of[1] };
    else if (bright && ones < 8) now = { ...now, [bright[0]]: bright[1] };
  }
  return now;
}

const steps = [0, 95, 135, 175, 215, 255];

/** One of 256, `5;n`, or of 16 million, `2;red;green;blue`. */
function longColour([kind, ...values], colours) {
  const [number = 0] = values;
  const rgb = (parts) => `rgb(${parts.map((value) => Math.min(255, value || 0)).join(" ")})`;
  if (kind === 2) return { colour: rgb(values.slice(0, 3)), used: 4 };
  if (kind !== 5 || !(number >= 0 && number < 256)) return { colour: undefined, used: kind === 5 ? 2 : 0 };
  const [at, grey] = [number - 16, 8 + (number - 232) * 10];
  const cube = [Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((place) => steps[place]);
  const colour = number < 16 ? colours[number] : rgb(number >= 232 ? [grey, grey, grey] : cube);
  return { colour, used: 2 };
}

/**
 * @param {Pick<Line, "text" | "style" | "printedAt">} line
 * @param {number} number
 * @param {string} startedAt when the deployment began, or ""
 */
export function makeRow({ text, style, printedAt }, number, startedAt) {
  const [row, link, shown] = [withText("p", ""), withText("a", String(number)), withText("span", "")];
  row.id = `L${number}`;
  // A hundred thousand stops of the Tab key help nobody.
  Object.assign(link, { href: `#${row.id}`, tabIndex: -1 });
  const sinceMs = Date.parse(printedAt) - Date.parse(startedAt);
  const time = withText("time", Number.isNaN(sinceMs) ? "" : sinceStart(sinceMs));
  time.title = printedAt ?? "";
  for (const run of readRuns(text, style).runs) appendRun(shown, run);
  row.append(link, time, shown);
  return row;
}

function sinceStart(ms) {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 60) return `+${seconds.toFixed(2)} s`;
  return `+${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
}

function withText(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

const effects = {
  1: ["fontWeight", "700"],
  2: ["opacity", "0.7"],
  3: ["fontStyle", "italic"],
  4: ["textDecoration", "underline"],
  8: ["opacity", "0.35"],
  9: ["textDecoration", "line-through"],
};

function appendRun(parent, { text, style }) {
  if (style === plainStyle) return appendLinked(parent, text);
  const span = document.createElement("span");
  for (const [code, [name, value]] of Object.entries(effects)) if (style[code]) span.style[name] = value;
  const { ink, paper } = style;
  span.style.color = (style[7] ? (paper ?? "var(--log)") : ink) ?? "";
  span.style.backgroundColor = (style[7] ? (ink ?? "var(--ink)") : paper) ?? "";
  appendLinked(span, text);
  parent.append(span);
}

const links = /https?:\/\/[^\s<>"'`\\^{}|]+/gi;

function appendLinked(parent, text) {
  let from = 0;
  for (const match of text.includes("://") ? text.matchAll(links) : []) {
    const address = match[0].replace(/(?<![.,;:!?)\]])[.,;:!?)\]]+$/, "");
    if (!URL.canParse(address)) continue;
    const link = withText("a", address);
    Object.assign(link, { href: address, target: "_blank", rel: "noopener noreferrer nofollow" });
    parent.append(text.slice(from, match.index), link);
    from = match.index + address.length;
  }
  parent.append(text.slice(from));
}
