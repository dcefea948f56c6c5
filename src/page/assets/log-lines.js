// The bytes of a log as lines: the same ones, with the same numbers, as the server cuts them (src/runner/lines.ts).

/**
 * A line as it was printed.
 * @typedef {object} Line
 * @property {string} text
 * @property {number} startByte
 * @property {number} endByte the place in the log at which the next line begins
 * @property {number | null} printedMs
 * @property {import("./log-ansi.js").Style} style what colours earlier lines have left on
 */

const [lineFeed, carriageReturn] = [0x0a, 0x0d];
const longestLine = 8_192;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * @param {Uint8Array} bytes
 * @param {boolean} isOver whether what has no line end is a line
 * @returns {{ text: string, endByte: number }[]}
 */
export function cutLines(bytes, isOver) {
  const lines = [];
  // Decoded at once, which is many times faster than line by line.
  const texts = decoder.decode(bytes).split("\n");
  let start = 0;
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
    const text = texts[lines.length] ?? "";
    lines.push({ text, start, end });
    start = end + 1;
  }
  if (isOver && start < bytes.length) lines.push({ text: texts.at(-1) ?? "", start, end: bytes.length });
  return lines.flatMap((line) => piecesOf(bytes, line));
}

function piecesOf(bytes, { text, start, end }) {
  const next = Math.min(end + 1, bytes.length);
  const hasReturn = bytes[end - 1] === carriageReturn && end < bytes.length;
  if (end - start <= longestLine) return [{ text: hasReturn ? text.slice(0, -1) : text, endByte: next }];
  const pieces = [];
  const last = hasReturn ? end - 1 : end;
  let from = start;
  for (; last - from > longestLine; ) {
    const to = endOfCharacters(bytes, from + longestLine);
    pieces.push({ text: decoder.decode(bytes.subarray(from, to)), endByte: to });
    from = to;
  }
  return [...pieces, { text: decoder.decode(bytes.subarray(from, last)), endByte: next }];
}

/** The last place up to `end` at which no character of UTF-8 is cut. */
function endOfCharacters(bytes, end) {
  return (
    [end, end - 1, end - 2, end - 3].find((place) => (bytes[place] & 0b1100_0000) !== 0b1000_0000) ?? end
  );
}

/** The name of the step that a line announces, or null. */
export function stepOf(text) {
  return /^==> (\S.{0,199})$/.exec(text.trimEnd())?.[1] ?? null;
}

/**
 * Puts the moments of `notes` on the lines, of which each says when what follows a place in the log was printed.
 * @param {Line[]} lines
 * @param {string} notes a line `<byte> <milliseconds>` each
 */
export function takeTimes(lines, notes) {
  const moments = [...notes.matchAll(/^(\d+) (\d+)$/gm)].map(([, byte, ms]) => [Number(byte), Number(ms)]);
  let index = -1;
  for (const line of lines) {
    while (index + 1 < moments.length && moments[index + 1][0] <= line.startByte) index += 1;
    line.printedMs ??= moments[index]?.[1] ?? null;
  }
}
