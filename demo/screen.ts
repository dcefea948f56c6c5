import { isFancy, paint } from "./paint.ts";
import { fit, widthColumns } from "./text.ts";

const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";
const eraseRest = "\u001b[K";
const redrawMs = 100;

let label: (() => string) | null = null;
let isDrawn = false;

/** Writes a line, above the progress line if there is one. */
export function print(line = ""): void {
  process.stdout.write(isDrawn ? `\r${line}${eraseRest}\n${drawing()}` : `${line}\n`);
}

/**
 * Waits for `work`. On a terminal, a progress line at the bottom shows the current activity if the work takes a moment.
 * It disappears when the work is done.
 */
export async function during<Result>(what: () => string, work: Promise<Result>): Promise<Result> {
  if (!isFancy) return await work;
  const startMs = performance.now();
  label = () => `${what()}  ${((performance.now() - startMs) / 1_000).toFixed(1)} s`;
  const timer = setInterval(draw, redrawMs);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    endProgress();
  }
}

/** Removes the progress line. Must be called before the process exits, because the line hides the cursor. */
export function endProgress(): void {
  if (isDrawn) process.stdout.write(`\r${eraseRest}${showCursor}`);
  isDrawn = false;
  label = null;
}

function draw(): void {
  process.stdout.write(`${isDrawn ? "\r" : hideCursor}${drawing()}`);
  isDrawn = true;
}

/** One write that replaces the old line, so that nothing flickers. */
function drawing(): string {
  const columns = Math.min(widthColumns, process.stdout.columns);
  return `${paint("dim", fit(`   ${label?.() ?? ""}`, columns - 1))}${eraseRest}`;
}
