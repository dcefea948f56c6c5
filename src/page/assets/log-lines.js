// The bytes of a log as lines, each `<time> <text>`, as the server keeps them (src/runner/log-file.ts).

/**
 * A line as it was printed.
 * @typedef {object} Line
 * @property {string} text
 * @property {number} endByte the place in the log at which the next line begins
 * @property {number | null} printedMs
 * @property {import("./log-ansi.js").Style} style what colours earlier lines have left on
 */

const lineFeed = 0x0a;
const timed = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z[ +]/;
const timeLength = 25;

/**
 * @param {Uint8Array} bytes
 * @returns {{ text: string, endByte: number, printedMs: number | null }[]}
 */
export function cutLines(bytes) {
  // Decoded at once, which is many times faster than line by line.
  const texts = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).split("\n");
  let end = 0;
  return texts.slice(0, -1).map((whole) => {
    end = bytes.indexOf(lineFeed, end) + 1;
    const isTimed = timed.test(whole);
    const printedMs = isTimed ? Date.parse(whole.slice(0, timeLength - 1)) : null;
    return { text: whole.slice(isTimed ? timeLength : 0).replace(/\r$/, ""), endByte: end, printedMs };
  });
}

/** The name of the step that a line announces, or null. */
export function stepOf(text) {
  return /^==> (\S.{0,199})$/.exec(text.trimEnd())?.[1] ?? null;
}
