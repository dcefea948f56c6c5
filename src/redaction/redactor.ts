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
  const forms = formsOf(bounded(values));
  const find = createFinder(forms);

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
        const found = find(bytes, at, isEnd);
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

/** What the forms of all secrets take in memory, and in time when they are made, grows with this. */
const mostSecretBytes = 256 * 1024;

/** The values that come first; nobody has more by hand. */
function bounded(values: Iterable<string>): readonly string[] {
  let leftBytes = mostSecretBytes;
  return [...new Set(values)].filter((value) => {
    leftBytes -= Buffer.byteLength(value);
    return leftBytes >= 0;
  });
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
    for (const text of [value, url, lowerUrl, json])
      for (const piece of piecesOf(text)) forms.set(piece, forms.get(piece) ?? false);
    for (const text of base64FormsOf(value)) {
      for (const piece of piecesOf(text)) forms.set(piece, true);
      // The rest, if a line ends within its first characters.
      const rest = text.slice(leastBeforeLineEnd - 1);
      if (rest.length >= leastRedactedBytes) forms.set(rest, true);
    }
  }
  return Array.from(forms, ([text, spansLines]) => ({ bytes: Buffer.from(text, "latin1"), spansLines }));
}

/** A longer form is found by its pieces, a character for each byte, so that the search at one place ends soon. */
const longestPiece = 64;

/** The pieces of a form, a character for each byte; the last one overlaps the one before. */
function piecesOf(text: string): readonly string[] {
  const bytes = Buffer.from(text).toString("latin1");
  const count = Math.ceil(bytes.length / longestPiece);
  return Array.from({ length: count }, (_, index) => {
    const from = Math.max(0, Math.min(index * longestPiece, bytes.length - longestPiece));
    return bytes.slice(from, from + longestPiece);
  });
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

/** A form goes on after a line end only if so much of it comes before. */
const leastBeforeLineEnd = 4;
const [lineFeed, carriageReturn] = [10, 13];

/** Finds which of many forms stands at a place, in time that grows with the length of a form and not with their number. */
function createFinder(forms: readonly Form[]) {
  const tries = [false, true].map((spansLines) => ({
    spansLines,
    trie: buildTrie(forms.filter((form) => form.spansLines === spansLines).map(({ bytes }) => bytes)),
  }));
  /**
   * @param isEnd whether nothing comes after `bytes`
   * @returns how many bytes the longest form at `at` has; "begun" if the bytes end within a longer one; null if none is there
   */
  return (bytes: Buffer, at: number, isEnd: boolean): number | "begun" | null => {
    let longest: number | null = null;
    for (const { spansLines, trie } of tries) {
      const found = walk(trie, spansLines, bytes, at, isEnd);
      if (found === "begun") return found;
      if (found !== null && found > (longest ?? 0)) longest = found;
    }
    return longest;
  };
}

/** A tree of bytes in arrays: an object for each node would take ten times the memory. 0 is the root, and "none". */
interface Trie {
  readonly byteOf: Uint8Array;
  readonly firstChild: Uint32Array;
  readonly nextSibling: Uint32Array;
  readonly isForm: Uint8Array;
}

function buildTrie(forms: readonly Buffer[]): Trie {
  const mostNodes = forms.reduce((sum, { length }) => sum + length, 1);
  const [byteOf, isForm] = [new Uint8Array(mostNodes), new Uint8Array(mostNodes)];
  const [firstChild, nextSibling] = [new Uint32Array(mostNodes), new Uint32Array(mostNodes)];
  const trie = { byteOf, isForm, firstChild, nextSibling };
  let count = 1;
  for (const form of forms) {
    let node = 0;
    for (const byte of form) {
      let child = childOf(trie, node, byte);
      if (child === 0) {
        child = count;
        count += 1;
        byteOf[child] = byte;
        nextSibling[child] = firstChild[node] ?? 0;
        firstChild[node] = child;
      }
      node = child;
    }
    isForm[node] = 1;
  }
  return trie;
}

function childOf({ byteOf, firstChild, nextSibling }: Trie, node: number, byte: number): number {
  let child = firstChild[node] ?? 0;
  while (child !== 0 && byteOf[child] !== byte) child = nextSibling[child] ?? 0;
  return child;
}

function walk(
  trie: Trie,
  spansLines: boolean,
  bytes: Buffer,
  from: number,
  isEnd: boolean,
): number | "begun" | null {
  let [node, matched, lineEnds] = [0, 0, 0];
  let longest: number | null = null;
  for (let at = from; trie.firstChild[node] !== 0; at += 1) {
    const byte = bytes[at];
    if (byte === undefined) return isEnd || node === 0 ? longest : "begun";
    const child = childOf(trie, node, byte);
    const isLineEnd = byte === lineFeed || byte === carriageReturn;
    if (child !== 0) {
      [node, matched, lineEnds] = [child, matched + 1, 0];
      if (trie.isForm[node] === 1) longest = at + 1 - from;
    } else if (spansLines && isLineEnd && matched >= leastBeforeLineEnd && lineEnds < 2) lineEnds += 1;
    else break;
  }
  return longest;
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
