/** The most bytes of a line that are passed on at once; the rest follows as a piece of its own. */
export const longestLine = 8_192;

/** Cuts a stream of bytes into lines. */
export interface LineCutter {
  readonly push: (chunk: Buffer) => void;
  /** Passes on the rest, which has no line end. */
  readonly finish: () => void;
}

const lineFeed = 0x0a;

/**
 * @param onLine gets each line without its line feed; of one that is too long its pieces, each but the first of which
 * `continues` the one before
 */
export function createLineCutter(onLine: (line: Buffer, continues: boolean) => void): LineCutter {
  let rest: Buffer = Buffer.alloc(0);
  let continues = false;

  /** @returns the rest, which is not too long */
  function passLongPieces(bytes: Buffer): Buffer {
    let from = 0;
    while (bytes.length - from > longestLine) {
      const end = endOfCharacters(bytes, from + longestLine);
      onLine(bytes.subarray(from, end), continues);
      continues = true;
      from = end;
    }
    return bytes.subarray(from);
  }

  function passLine(bytes: Buffer): void {
    const last = passLongPieces(bytes);
    onLine(last, continues);
    continues = false;
  }

  return {
    push(chunk) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
        passLine(bytes.subarray(from, end));
        from = end + 1;
      }
      // A copy: a small rest must not keep a large chunk.
      rest = Buffer.from(passLongPieces(bytes.subarray(from)));
    },
    finish() {
      if (rest.length > 0) passLine(rest);
      rest = Buffer.alloc(0);
    },
  };
}

/** A line as text, without the carriage return of Windows. Bytes that are no UTF-8 are replaced. */
export function lineText(line: Buffer): string {
  const text = line.toString("utf8");
  return text.endsWith("\r") ? text.slice(0, -1) : text;
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
