import { control } from "./output.ts";
import type { Terminal } from "./terminal.ts";

/** One line at the bottom of a terminal that is rewritten in place; nothing if output is piped. */
export interface Progress {
  /** Prints lines above it. */
  readonly print: (...lines: readonly string[]) => void;
  /** Removes it for good: the cursor is at the beginning of an empty line. */
  readonly end: () => void;
}

const redrawMs = 1_000;
const eraseRest = control("K");
const toStart = control("G");

/**
 * Shows what `text` returns, and updates it every second. Each change is one write that first overwrites the line and
 * then erases its rest, so that nothing flickers.
 *
 * @param write writes text to the terminal
 */
export function showProgress(
  terminal: Terminal,
  write: (text: string) => void,
  text: () => string,
): Progress {
  if (!terminal.isInteractive) return { print: terminal.print, end() {} };
  let shown = "";

  /** The characters that replace the shown line by the present text. */
  function redrawn(): string {
    const before = shown;
    shown = text().slice(0, terminal.columns - 1);
    if (shown === "") return before === "" ? "" : `${toStart}${eraseRest}`;
    return `${toStart}${terminal.paint("dim", shown)}${eraseRest}`;
  }

  const timer = setInterval(() => {
    if (text().slice(0, terminal.columns - 1) !== shown) write(redrawn());
  }, redrawMs).unref();
  write(redrawn());
  return {
    print(...lines) {
      const start = shown === "" ? "" : toStart;
      write(`${lines.map((line) => `${start}${line}${start && eraseRest}\n`).join("")}${redrawn()}`);
    },
    end() {
      clearInterval(timer);
      if (shown !== "") write(`${toStart}${eraseRest}`);
      shown = "";
    },
  };
}
