import { encodingsOf, leastBeforeLineEnd } from "./encodings.ts";
import { createAutomaton } from "./pattern-automaton.ts";

/** Replaces secrets by `***`. */
export interface Redactor {
  readonly text: (text: string) => string;
  /**
   * A redactor for a stream of bytes that come in pieces. One that is resumed may begin in the midst of a secret, whose
   * beginning was read by a service that is gone.
   */
  readonly stream: (options?: { readonly isResumed: boolean }) => RedactionStream;
}

export interface RedactionStream {
  /**
   * Takes the next piece and gives what can be told now. What may be the beginning of a secret is held back until it
   * shows what it is: never more than the longest encoding of a secret, less one byte, and what stands between its lines.
   */
  readonly push: (chunk: Buffer) => Buffer;
  /** Gives what was held back, as nothing follows. */
  readonly finish: () => Buffer;
}

/** A piece to be replaced. It begins before 0 where the stars for it were given out already. */
interface Range {
  readonly start: number;
  readonly end: number;
}

const stars = Buffer.from("***");
const nothing = Buffer.alloc(0);

/** Makes the redactor for `values`: in plain, URL and JSON encoding, quoted for a shell, in base64 and in hex. */
export function createRedactor(values: Iterable<string>): Redactor {
  const encodings = [...new Set(values)].map(encodingsOf);
  const literal = encodings.flatMap((encoding) => encoding.literal).map((text) => Buffer.from(text));
  const encoded = encodings.flatMap((encoding) => encoding.encoded).map((text) => Buffer.from(text));
  const automata = [
    createAutomaton(literal),
    createAutomaton(encoded, { skippedBytes: " \t\r\n:", leastBeforeLineEnd }),
  ];

  function createStream({ isResumed } = { isResumed: false }): RedactionStream {
    let isBegun = !isResumed;
    let held = nothing;
    let ranges: readonly Range[] = [];
    const states = automata.map(() => 0);

    function giveOut(bytes: Buffer, found: readonly Range[], limit: number): Buffer {
      const told = redacted(bytes, found, limit);
      // A copy: what is held would keep the whole piece in memory.
      held = Buffer.from(bytes.subarray(limit));
      ranges = found
        .filter(({ end }) => end > limit)
        .map(({ start, end }) => ({ start: start - limit, end: end - limit }));
      return told;
    }

    return {
      push(chunk) {
        const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
        const found: Range[] = [...ranges];
        if (!isBegun) found.push(...restAtStart([...literal, ...encoded], bytes));
        isBegun = true;
        const tails = automata.map((automaton, index) => {
          const onMatch = (start: number, end: number) => void found.push({ start, end });
          const state = automaton.scan(bytes, held.length, states[index] ?? 0, onMatch);
          states[index] = state;
          return automaton.tailStart(bytes, state);
        });
        return giveOut(bytes, found, Math.min(...tails));
      },
      finish() {
        states.fill(0);
        return giveOut(held, ranges, held.length);
      },
    };
  }

  return {
    stream: createStream,
    text(text) {
      const stream = createStream();
      return Buffer.concat([stream.push(Buffer.from(text)), stream.finish()]).toString();
    },
  };
}

/** `bytes` up to `limit`, with stars for each of `ranges` that begins there; those that overlap are one. */
function redacted(bytes: Buffer, ranges: readonly Range[], limit: number): Buffer {
  if (ranges.length === 0) return bytes.subarray(0, limit);
  const parts: Buffer[] = [];
  let toldTo = 0;
  for (const { start, end } of ranges.toSorted((one, other) => one.start - other.start)) {
    if (start >= limit) break;
    if (start >= toldTo) parts.push(bytes.subarray(toldTo, start), stars);
    toldTo = Math.max(toldTo, end);
  }
  if (toldTo < limit) parts.push(bytes.subarray(toldTo, limit));
  return Buffer.concat(parts);
}

/** The longest end of one of `patterns` with which `bytes` begins, where it is enough to give the secret away. */
function restAtStart(patterns: readonly Buffer[], bytes: Buffer): readonly Range[] {
  let most = 0;
  for (const pattern of patterns) {
    for (let from = 1; pattern.length - from > Math.max(most, leastRedactedBytes - 1); from += 1) {
      const length = pattern.length - from;
      if (length <= bytes.length && pattern.compare(bytes, 0, length, from) === 0) most = length;
    }
  }
  return most === 0 ? [] : [{ start: 0, end: most }];
}

/**
 * What is shorter stands in ordinary output by chance ("root", "5432"), and stars in its place would tell where it
 * stands; its base64 would be five characters of which any text has some.
 */
export const leastRedactedBytes = 6;
/** Of a value of several lines, such as a private key, each line by itself is redacted, if it is this long. */
const leastLineBytes = 12;

/** Values that everybody knows: redacting them hides nothing and makes the output hard to read. */
const commonWords = new Set(
  [
    "changeme change-me default disabled docker enabled example localhost mariadb master mongodb mysql password",
    "postgres postgresql production rabbitmq secret staging development testing undefined",
  ].flatMap((line) => line.split(" ")),
);

/** A whole line of PEM that only says what follows. */
const pemBoundary = /^-----(?:BEGIN|END) [A-Z\d ]+-----$/;

/** What of `value` is to be looked for in output: it, or its lines; nothing where that would make no sense. */
export function redactedPartsOf(value: string): readonly string[] {
  const lines = value.trim().split(/\s*\n\s*/);
  const least = lines.length === 1 ? leastRedactedBytes : leastLineBytes;
  return lines.filter(
    (line) => Buffer.byteLength(line) >= least && !isCommon(line) && !pemBoundary.test(line),
  );
}

/** True for a value that would be redacted if only it were longer; a switch or a number is no secret anyway. */
export function isTooShort(value: string): boolean {
  const text = value.trim();
  if (text === "" || isCommon(text) || /^(?:true|false|yes|no|on|off|none|null|\d{1,3})$/i.test(text))
    return false;
  return redactedPartsOf(text).length === 0;
}

function isCommon(text: string): boolean {
  return commonWords.has(text.toLowerCase());
}
