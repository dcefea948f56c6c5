import type { Terminal } from "./terminal.ts";

/** One line at the bottom of a terminal that is rewritten in place; nothing at all where output is piped. */
export interface Progress {
  /** Prints lines above it. */
  readonly print: (...lines: readonly string[]) => void;
  /** Takes it away for good: the cursor is at the beginning of an empty line. */
  readonly end: () => void;
}

const redrawMs = 1_000;
const clearLine = "\r\u001b[2K";

/**
 * Shows what `text` gives, anew every second.
 *
 * @param write takes what goes to the terminal as it stands
 */
export function showProgress(
  terminal: Terminal,
  write: (text: string) => void,
  text: () => string,
): Progress {
  if (!terminal.isInteractive) return { print: terminal.print, end() {} };
  let shown = "";

  function draw(): void {
    const next = text().slice(0, terminal.columns - 1);
    // Rewriting what has not changed would flicker.
    if (next !== shown) write(`${clearLine}${next === "" ? "" : terminal.paint("dim", next)}`);
    shown = next;
  }

  const timer = setInterval(draw, redrawMs).unref();
  draw();
  return {
    print(...lines) {
      if (shown !== "") write(clearLine);
      shown = "";
      terminal.print(...lines);
      draw();
    },
    end() {
      clearInterval(timer);
      if (shown !== "") write(clearLine);
      shown = "";
    },
  };
}
