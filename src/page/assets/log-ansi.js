// Colours of a terminal as classes. Text stays text: nothing here makes markup of what a script printed.

/**
 * How text looks from some place on. Never changed, so that lines can share one.
 * @typedef {object} Style
 * @property {string} effects numbers of effects that are on, such as " 1 4"
 * @property {string | null} ink the number of a colour, or rgb()
 * @property {string | null} paper
 */

/** @type {Style} */
export const plainStyle = Object.freeze({ effects: "", ink: null, paper: null });

const escapeCharacter = "\u001b";
/** What follows an escape character (ECMA-48): a control sequence, a text for the terminal, or a short command. */
const command = /^(?:\[([0-?]*)[ -/]*([@-~])|\]\P{Cc}*\p{Cc}?|[ -/]*[0-~])/u;
/** Any control character but the tab. */
const control = /[^\P{Cc}\t]/gu;
const hasControl = /[^\P{Cc}\t]/u;

/** What is left of a line on a terminal, as text alone. */
export function plainText(text) {
  return hasControl.test(text)
    ? readRuns(text, plainStyle)
        .runs.map((run) => run.text)
        .join("")
    : text;
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
  for (const [index, piece] of text
    .replace(/(?<!\r)\r+$/, "")
    .split(escapeCharacter)
    .entries()) {
    const found = index === 0 ? null : command.exec(piece);
    if (found?.[2] === "m") now = changed(now, found[1]);
    const rest = piece.slice(found?.[0].length ?? 0);
    const returned = rest.lastIndexOf("\r");
    // A carriage return goes back to the beginning: what is written then takes the place of what was there.
    if (returned !== -1) runs = [];
    const shown = rest.slice(returned + 1).replace(control, "");
    if (shown !== "") runs.push({ text: shown, style: now });
  }
  return { runs, end: now };
}

/** Applies "select graphic rendition" (ECMA-48, 8.3.117), with the colours of xterm. */
function changed(style, parameters) {
  const codes = parameters.split(/[;:]/).map(Number);
  let now = style;
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index];
    if (code === 38 || code === 48) {
      const { colour, used } = longColour(codes.slice(index + 1));
      now = code === 38 ? { ...now, ink: colour } : { ...now, paper: colour };
      index += used;
    } else now = afterCode(now, code);
  }
  return now;
}

function afterCode(style, code) {
  const { effects } = style;
  if (code === 0) return plainStyle;
  if (code < 10) return effects.includes(` ${code}`) ? style : { ...style, effects: `${effects} ${code}` };
  if (code === 22) return { ...style, effects: effects.replace(/ [12]/g, "") };
  if (code > 22 && code < 30) return { ...style, effects: effects.replace(` ${code - 20}`, "") };
  if (code >= 30 && code < 38) return { ...style, ink: String(code - 30) };
  if (code === 39) return { ...style, ink: null };
  if (code >= 40 && code < 48) return { ...style, paper: String(code - 40) };
  if (code === 49) return { ...style, paper: null };
  if (code >= 90 && code < 98) return { ...style, ink: String(code - 82) };
  if (code >= 100 && code < 108) return { ...style, paper: String(code - 92) };
  return style;
}

/** One of 256, `5;n`, or of 16 million, `2;red;green;blue`. */
function longColour([kind, ...values]) {
  if (kind === 5) return { colour: colourAt(values[0] ?? 0), used: 2 };
  if (kind !== 2) return { colour: null, used: 0 };
  const parts = values.slice(0, 3).map((value) => Math.min(255, value || 0));
  return { colour: `rgb(${parts.join(" ")})`, used: 4 };
}

const steps = [0, 95, 135, 175, 215, 255];

function colourAt(number) {
  if (!(number >= 0 && number < 256)) return null;
  if (number < 16) return String(number);
  if (number >= 232)
    return `rgb(${Array(3)
      .fill(8 + (number - 232) * 10)
      .join(" ")})`;
  const at = number - 16;
  return `rgb(${steps[Math.floor(at / 36)]} ${steps[Math.floor(at / 6) % 6]} ${steps[at % 6]})`;
}

/** Makes an element look so: the sixteen colours are those of the page, the others are set one by one. */
export function applyStyle(element, { effects, ink, paper }) {
  for (const effect of effects.trim().split(" ")) if (effect) element.classList.add(`a${effect}`);
  const isReversed = effects.includes(" 7");
  const [front, back] = isReversed ? [paper ?? "ground", ink ?? "15"] : [ink, paper];
  if (front?.startsWith("rgb")) element.style.color = front;
  else if (front !== null) element.classList.add(`f${front}`);
  if (back?.startsWith("rgb")) element.style.backgroundColor = back;
  else if (back !== null) element.classList.add(`b${back}`);
}
