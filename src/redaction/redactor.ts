/** Replaces known secrets in text. Best effort: a secret in another form than these is not found (docs/deploy-script.md). */
export interface Redactor {
  /**
   * Makes a stream for output that comes in pieces.
   *
   * @param options.isResumed whether the output may begin within a secret whose first part another stream held back
   */
  readonly stream: (options?: { readonly isResumed: boolean }) => RedactionStream;
  readonly text: (text: string) => string;
}

/** Passes on what cannot belong to a secret, at once; of a secret that has begun, nothing. */
export interface RedactionStream {
  /** @returns what can be passed on. At most the longest form of a secret, less one byte, is held back. */
  readonly push: (chunk: Buffer) => Buffer;
  /** Returns what was held back, at the end of the stream. */
  readonly finish: () => Buffer;
}

const stars = Buffer.from("***");

/** Creates the redactor for `values`: as they are, and in URL, JSON and base64 encoding. */
export function createRedactor(values: Iterable<string>): Redactor {
  const forms = formsOf(values);
  const index = indexByStart(forms);

  function createStream({ isResumed } = { isResumed: false }): RedactionStream {
    let held: Buffer = Buffer.alloc(0);
    /** How many bytes at the beginning of `held` belong to a secret whose stars were passed on. */
    let coveredBytes = 0;
    let mayBeginWithin = isResumed;

    function passOn(bytes: Buffer, isEnd: boolean): Buffer {
      const parts: Buffer[] = [];
      if (mayBeginWithin) coveredBytes = restAtStart(forms, bytes);
      if (mayBeginWithin && coveredBytes > 0) parts.push(stars);
      mayBeginWithin = false;
      let coveredTo = coveredBytes;
      let plainFrom = coveredTo;
      let at = 0;
      for (; at < bytes.length; at += 1) {
        const found = index.find(bytes, at, isEnd);
        if (found === "begun") break;
        if (found === null) continue;
        // Secrets that overlap are replaced as one.
        if (at >= coveredTo) parts.push(bytes.subarray(plainFrom, at), stars);
        coveredTo = Math.max(coveredTo, at + found);
        plainFrom = coveredTo;
      }
      if (at > plainFrom) parts.push(bytes.subarray(plainFrom, at));
      // A copy, because a view would keep the whole piece in memory.
      held = Buffer.from(bytes.subarray(at));
      coveredBytes = Math.max(0, coveredTo - at);
      return Buffer.concat(parts);
    }

    return {
      push: (chunk) => passOn(held.length === 0 ? chunk : Buffer.concat([held, chunk]), false),
      finish: () => passOn(held, true),
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

/** A form in which a secret is printed. */
interface Form {
  readonly bytes: Buffer;
  /** Whether programs break it into lines. */
  readonly spansLines: boolean;
}

/** The value itself, and as programs write it into URLs and JSON, and in base64. */
function formsOf(values: Iterable<string>): readonly Form[] {
  const forms = new Map<string, boolean>();
  for (const value of values) {
    const url = encodeURIComponent(value.toWellFormed());
    const json = JSON.stringify(value).slice(1, -1);
    const lowerUrl = url.replace(/%../g, (code) => code.toLowerCase());
    for (const text of [value, url, lowerUrl, json]) forms.set(text, forms.get(text) ?? false);
    for (const text of base64FormsOf(value)) {
      forms.set(text, true);
      // The rest, if a line ends within its first characters.
      const rest = text.slice(leastBeforeLineEnd - 1);
      if (rest.length >= leastRedactedBytes) forms.set(rest, true);
    }
  }
  return Array.from(forms, ([text, spansLines]) => ({ bytes: Buffer.from(text), spansLines }));
}

/**
 * The characters that depend on `value` alone at any position in a longer text. Three bytes make four characters, so there
 * are three variants. The characters at both ends that it shares with its neighbours are left out.
 */
function base64FormsOf(value: string): readonly string[] {
  return [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]);
    const [first, end] = [Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6)];
    return (["base64", "base64url"] as const).map((encoding) => bytes.toString(encoding).slice(first, end));
  });
}

/** Finds which of many forms stands at a place. Most places are decided by their first two bytes. */
function indexByStart(forms: readonly Form[]) {
  const byStart = new Map<number, Form[]>();
  const isFirstByte = new Uint8Array(256);
  const startOf = (bytes: Buffer, at: number) => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  for (const form of forms.toSorted((one, other) => other.bytes.length - one.bytes.length)) {
    const start = startOf(form.bytes, 0);
    byStart.set(start, [...(byStart.get(start) ?? []), form]);
    isFirstByte[form.bytes[0] ?? 0] = 1;
  }
  return {
    /**
     * @param isEnd whether nothing comes after `bytes`
     * @returns how many bytes the longest form at `at` has; "begun" if the bytes end within a longer one; null if none is there
     */
    find(bytes: Buffer, at: number, isEnd: boolean): number | "begun" | null {
      if (isFirstByte[bytes[at] ?? 0] === 0) return null;
      if (at + 1 === bytes.length) return isEnd ? null : "begun";
      for (const form of byStart.get(startOf(bytes, at)) ?? []) {
        const found = match(form, bytes, at);
        if (typeof found === "number" || (found === "begun" && !isEnd)) return found;
      }
      return null;
    },
  };
}

/** A form goes on after a line end only if so much of it comes before. */
const leastBeforeLineEnd = 4;
const [lineFeed, carriageReturn] = [10, 13];

function match({ bytes: form, spansLines }: Form, bytes: Buffer, from: number): number | "begun" | null {
  let at = from;
  let ends = 0;
  for (let matched = 0; matched < form.length; at += 1) {
    const byte = bytes[at];
    if (byte === undefined) return "begun";
    const isLineEnd = byte === lineFeed || byte === carriageReturn;
    if (byte === form[matched]) [matched, ends] = [matched + 1, 0];
    else if (spansLines && isLineEnd && matched >= leastBeforeLineEnd && ends < 2) ends += 1;
    else return null;
  }
  return at - from;
}

/** How many bytes at the beginning of `bytes` are the end of one of `forms`, if they are enough to reveal a secret. */
function restAtStart(forms: readonly Form[], bytes: Buffer): number {
  let most = 0;
  for (const { bytes: form } of forms) {
    for (let from = 1; form.length - from > Math.max(most, leastRedactedBytes - 1); from += 1) {
      const length = form.length - from;
      if (length <= bytes.length && form.compare(bytes, 0, length, from) === 0) most = length;
    }
  }
  return most;
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
  const lines = value
    .trim()
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
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
