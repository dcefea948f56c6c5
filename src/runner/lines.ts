/** The most bytes of a line that are passed on at once; the rest follows as a line of its own. */
export const longestLine = 8_192;

/** Cuts a stream of bytes into lines of text. */
export interface LineCutter {
  readonly push: (chunk: Buffer) => void;
  /** Passes on the rest, which has no line end. */
  readonly finish: () => void;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * @param onLine gets each line without its end, and the place in the stream at which the next one begins
 * @param startByte the place in the stream of the first byte that is pushed
 */
export function createLineCutter(onLine: (line: string, endByte: number) => void, startByte = 0): LineCutter {
  let rest: Buffer = Buffer.alloc(0);
  let at = startByte;

  function passOn(bytes: Buffer): void {
    at += bytes.length;
    onLine(bytes.toString("utf8"), at);
  }

  /** @returns the rest, which is not too long */
  function passLongPieces(bytes: Buffer): Buffer {
    let from = 0;
    while (bytes.length - from > longestLine) {
      const end = endOfCharacters(bytes, from + longestLine);
      passOn(bytes.subarray(from, end));
      from = end;
    }
    return bytes.subarray(from);
  }

  /** @param bytes a line with its end */
  function passLine(bytes: Buffer): void {
    const endsWithReturn = bytes.at(-2) === carriageReturn;
    const last = passLongPieces(bytes.subarray(0, endsWithReturn ? -2 : -1));
    at += last.length + (endsWithReturn ? 2 : 1);
    onLine(last.toString("utf8"), at);
  }

  return {
    push(chunk) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
        passLine(bytes.subarray(from, end + 1));
        from = end + 1;
      }
      // A copy: a small rest must not keep a large chunk.
      rest = Buffer.from(passLongPieces(bytes.subarray(from)));
    },
    finish() {
      if (rest.length > 0) passOn(rest);
      rest = Buffer.alloc(0);
    },
  };
}

/** The last place up to `end` at which no character of UTF-8 is cut. */
function endOfCharacters(bytes: Buffer, end: number): number {
  const isInside = (place: number) => ((bytes[place] ?? 0) & 0b1100_0000) === 0b1000_0000;
  const starts = [end, end - 1, end - 2, end - 3];
  return starts.find((place) => !isInside(place)) ?? end;
}

/** The name of the step that a line announces, such as `Build` in `==> Build`, or null. */
export function stepOf(line: string): string | null {
  return /^==> (\S.{0,199})$/.exec(line.trimEnd())?.[1] ?? null;
}
