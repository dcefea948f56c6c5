import { encodingsOf, leastBeforeLineEnd } from "./encodings.ts";
import { createAutomaton } from "./pattern-automaton.ts";

/** Replaces secrets by `***`. */
export interface Redactor {
  readonly text: (text: string) => string;
  /**
   * A redactor for a stream of bytes. A resumed stream may begin in the middle of a secret, if an earlier service read its
   * beginning.
   */
  readonly stream: (options?: { readonly isResumed: boolean }) => RedactionStream;
}

export interface RedactionStream {
  /**
   * Takes the next piece and returns what is redacted so far. A possible beginning of a secret is held back until more
   * bytes decide: never more than the longest encoding of a secret, less one byte, and the white space between its lines.
   */
  readonly push: (chunk: Buffer) => Buffer;
  /** Returns what was held back, at the end of the stream. */
  readonly finish: () => Buffer;
}

/** A piece to replace. It begins before 0 if its stars were passed on already. */
interface Range {
  readonly start: number;
  readonly end: number;
}

const stars = Buffer.from("***");
const nothing = Buffer.alloc(0);

/** Creates the redactor for `values`: in plain, URL and JSON encoding, quoted for a shell, in base64 and in hex. */
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

    function passOn(bytes: Buffer, found: readonly Range[], limit: number): Buffer {
      const passedOn = redacted(bytes, found, limit);
      // A copy, because a view would keep the whole piece in memory.
      held = Buffer.from(bytes.subarray(limit));
      ranges = found
        .filter(({ end }) => end > limit)
        .map(({ start, end }) => ({ start: start - limit, end: end - limit }));
      return passedOn;
    }

    return {
      push(chunk) {
        const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
        const found: Range[] = [...ranges];
        if (!isBegun) found.push(...restAtStart([...literal, ...encoded], bytes));
        isBegun = true;
        const tails = automata.map((automaton, index) => {
          const onMatch = (start: number, end: number) => {
            found.push({ start, end });
          };
          const state = automaton.scan(bytes, held.length, states[index] ?? 0, onMatch);
          states[index] = state;
          return automaton.tailStart(bytes, state);
        });
        return passOn(bytes, found, Math.min(...tails));
      },
      finish() {
        states.fill(0);
        return passOn(held, ranges, held.length);
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
  let passedTo = 0;
  for (const { start, end } of ranges.toSorted((one, other) => one.start - other.start)) {
    if (start >= limit) break;
    if (start >= passedTo) parts.push(bytes.subarray(passedTo, start), stars);
    passedTo = Math.max(passedTo, end);
  }
  if (passedTo < limit) parts.push(bytes.subarray(passedTo, limit));
  return Buffer.concat(parts);
}

/** The longest end of one of `patterns` with which `bytes` begins, if it is long enough to reveal the secret. */
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
 * Shorter values occur in ordinary output by chance ("root", "5432"), and stars would show their position. Their base64
 * would have at most five characters, which any text contains.
 */
export const leastRedactedBytes = 6;
/** In a value of several lines, such as a private key, each line of at least this length is redacted by itself. */
const leastLineBytes = 12;

/** Common values: redacting them hides nothing and makes the output hard to read. */
const commonWords = new Set(
  [
    "changeme change-me default disabled docker enabled example localhost mariadb master mongodb mysql password",
    "postgres postgresql production rabbitmq secret staging development testing undefined",
  ].flatMap((line) => line.split(" ")),
);

/** A line of PEM that only marks the beginning or the end. */
const pemBoundary = /^-----(?:BEGIN|END) [A-Z\d ]+-----$/;

/** The parts of `value` to redact: itself or its lines; none if they are too short or common. */
export function redactedPartsOf(value: string): readonly string[] {
  const lines = value.trim().split(/\s*\n\s*/);
  const least = lines.length === 1 ? leastRedactedBytes : leastLineBytes;
  return lines.filter(
    (line) => Buffer.byteLength(line) >= least && !isCommon(line) && !pemBoundary.test(line),
  );
}

/** Whether `value` is not redacted only because it is too short; a switch or a small number is no secret anyway. */
export function isTooShort(value: string): boolean {
  const text = value.trim();
  if (text === "" || isCommon(text) || /^(?:true|false|yes|no|on|off|none|null|\d{1,3})$/i.test(text))
    return false;
  return redactedPartsOf(text).length === 0;
}

function isCommon(text: string): boolean {
  return commonWords.has(text.toLowerCase());
}
