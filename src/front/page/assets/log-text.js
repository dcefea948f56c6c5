// A log as text: its bytes as lines, and a line as an element. Everything that a script printed becomes text nodes.

/** A line as it was printed. @typedef {{ text: string, printedAt: string | null }} Line */

const timed = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)[ +](.*)/s;
/** More than a line has, and decoded at once, which is many times faster than line by line. */
const pieceBytes = 64 * 1024;

/**
 * Cuts the bytes of a log, which are lines `<time> <text>` (src/runner/log-file.ts).
 * @param {Uint8Array} bytes
 * @returns {Generator<{ lines: Line[], endByte: number }>} some lines at a time; `endByte`: where the next begin
 */
export function* cutLines(bytes) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for (let [from, endByte] = [0, 0]; ; from = endByte) {
    endByte = bytes.lastIndexOf(0x0a, from + pieceBytes) + 1;
    if (endByte <= from) return;
    const texts = decoder.decode(bytes.subarray(from, endByte - 1)).split("\n");
    const lines = texts.map((whole) => {
      const [, printedAt = null, text = whole] = timed.exec(whole) ?? [];
      return { text: text.replace(/\r$/, ""), printedAt };
    });
    yield { lines, endByte };
  }
}

/** The name of the step that a line announces, or null. */
export function stepOf(text) {
  return text.startsWith("==> ") ? (/^==> (\S.{0,199})$/.exec(text.trimEnd())?.[1] ?? null) : null;
}

/** How text looks from some place on. @typedef {{ readonly ink?: string, readonly isBold?: boolean }} Style */

/** @type {Style} */
const plain = {};

/** What follows an escape character (ECMA-48): a control sequence, a text for the terminal, or a short command. */
const command = /^(?:\[([0-?]*)[ -/]*([@-~])|\]\P{Cc}*\p{Cc}?|[ -/]*[0-~])/u;
/** Any control character but the tab. */
const control = /[^\P{Cc}\t]/gu;
const hasControl = /[^\P{Cc}\t]/u;

/** What is left of a line on a terminal, as text alone. */
export function plainText(text) {
  return readRuns(text)
    .map((run) => run.text)
    .join("");
}

/**
 * Cuts a line into runs that look alike. A colour that it leaves on ends with it.
 * @returns {{ text: string, style: Style }[]}
 */
function readRuns(text) {
  let [runs, now] = [[], plain];
  if (!hasControl.test(text)) return [{ text, style: now }];
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
  return runs;
}

const colours =
  "#8d909b #ff8787 #8ce99a #ffe066 #91c7ff #e5a3f5 #7fe0e8 #dedcd6 #a2a4ae #ffa8a8 #b2f2bb #ffec99 #bcdcff #f0c4fa #aef0f5 #ffffff".split(
    " ",
  );

/** Applies "select graphic rendition" (ECMA-48, 8.3.117): the sixteen colours of text, and bold. */
function changed(style, codes) {
  let now = style;
  for (const code of codes) {
    const [tens, ones] = [Math.floor(code / 10), code % 10];
    // The numbers of a colour out of 256, or of its parts, follow.
    if (code === 38 || code === 48) return now;
    if (code === 0) now = plain;
    else if (code === 1 || code === 22) now = { ...now, isBold: code === 1 };
    else if (tens === 3) now = { ...now, ink: ones === 9 ? undefined : colours[ones] };
    else if (tens === 9) now = { ...now, ink: colours[ones + 8] };
  }
  return now;
}

/**
 * @param {Line} line
 * @param {number} number
 * @param {string} startedAt when the deployment began, or ""
 */
export function makeRow({ text, printedAt }, number, startedAt) {
  const [row, link, shown] = [withText("p", ""), withText("a", String(number)), withText("span", "")];
  row.id = `L${number}`;
  // A hundred thousand stops of the Tab key help nobody.
  Object.assign(link, { href: `#${row.id}`, tabIndex: -1 });
  const sinceMs = Date.parse(printedAt) - Date.parse(startedAt);
  const clock = printedAt && startedAt === "" ? new Date(printedAt).toLocaleTimeString("en-GB") : "";
  const time = withText("time", Number.isNaN(sinceMs) ? clock : sinceStart(sinceMs));
  time.title = printedAt ?? "";
  for (const run of readRuns(text)) appendRun(shown, run);
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

function appendRun(parent, { text, style }) {
  if (style === plain) return appendLinked(parent, text);
  const span = document.createElement("span");
  span.style.color = style.ink ?? "";
  span.style.fontWeight = style.isBold ? "700" : "";
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
