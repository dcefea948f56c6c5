export interface SilenceOptions {
  /** 0: never. At most 24 h. */
  readonly silenceMs: number;
  /** When output came last, by the clock of `performance.now()`. */
  readonly quietSinceMs: () => number;
  readonly onSilent: (silentMs: number) => void;
}

/**
 * Tells of a silence of `silenceMs`, once, and again each time it has become twice as long.
 *
 * @returns a function that ends the watch
 */
export function watchSilence({ silenceMs, quietSinceMs, onSilent }: SilenceOptions): () => void {
  const measure = createSilenceMeasure(silenceMs, quietSinceMs());
  let timer: NodeJS.Timeout | null = null;
  let isOver = silenceMs === 0;

  function look(): void {
    if (isOver) return;
    const { toldMs, nextMs } = measure(performance.now(), quietSinceMs());
    if (toldMs !== null) onSilent(toldMs);
    lookIn(nextMs);
  }

  function lookIn(ms: number): void {
    // Where this process was asleep, output may be waiting to be read in this very turn of the loop.
    timer = setTimeout(() => setImmediate(look), Math.ceil(ms));
  }

  if (!isOver) lookIn(silenceMs);
  return () => {
    isOver = true;
    if (timer) clearTimeout(timer);
  };
}

/**
 * Makes a function that says, of a moment and of when output came last before it, how long a silence is to be told now,
 * or null, and in how many milliseconds to ask again.
 */
export function createSilenceMeasure(silenceMs: number, startMs: number) {
  let sinceMs = startMs;
  let tellAfterMs = silenceMs;
  return (nowMs: number, latestMs: number): { readonly toldMs: number | null; readonly nextMs: number } => {
    if (latestMs !== sinceMs) tellAfterMs = silenceMs;
    sinceMs = latestMs;
    const silentMs = nowMs - sinceMs;
    const isTold = silentMs >= tellAfterMs;
    while (tellAfterMs <= silentMs) tellAfterMs *= 2;
    return { toldMs: isTold ? silentMs : null, nextMs: tellAfterMs - silentMs };
  };
}
