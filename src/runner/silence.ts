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
  let timer: NodeJS.Timeout | null = null;
  let isOver = silenceMs === 0;
  let sinceMs = quietSinceMs();
  let tellAfterMs = silenceMs;

  function look(): void {
    if (isOver) return;
    const latestMs = quietSinceMs();
    if (latestMs !== sinceMs) {
      sinceMs = latestMs;
      tellAfterMs = silenceMs;
    }
    const silentMs = performance.now() - sinceMs;
    if (silentMs >= tellAfterMs) {
      onSilent(silentMs);
      while (tellAfterMs <= silentMs) tellAfterMs *= 2;
    }
    lookIn(sinceMs + tellAfterMs - performance.now());
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
