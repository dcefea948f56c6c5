import { StringDecoder } from "node:string_decoder";

/** The most characters of a line that are passed on at once; the rest follows as a line of its own. */
export const longestLine = 8_192;

/** Cuts a stream of bytes into lines of text. */
export interface LineCutter {
  readonly push: (chunk: Buffer) => void;
  /** Passes on the rest, which has no line end. */
  readonly finish: () => void;
}

export function createLineCutter(onLine: (line: string) => void): LineCutter {
  const decoder = new StringDecoder("utf8");
  let rest = "";

  function passOn(text: string): void {
    for (let start = 0; start === 0 || start < text.length; start += longestLine) {
      onLine(text.slice(start, start + longestLine));
    }
  }

  function take(text: string): void {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) passOn(line.endsWith("\r") ? line.slice(0, -1) : line);
    while (rest.length > longestLine) {
      onLine(rest.slice(0, longestLine));
      rest = rest.slice(longestLine);
    }
  }

  return {
    push: (chunk) => take(decoder.write(chunk)),
    finish() {
      take(decoder.end());
      if (rest !== "") passOn(rest);
      rest = "";
    },
  };
}

/** The name of the step that a line announces, such as `Build` in `==> Build`, or null. */
export function stepOf(line: string): string | null {
  return /^==> (\S.{0,199})$/.exec(line.trimEnd())?.[1] ?? null;
}
