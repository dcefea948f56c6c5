/** Looks that come again and again, and never two at a time. */
export interface Repetition {
  /** Looks now, unless a look is in progress. */
  readonly now: () => void;
  /** Looks at every interval from now on; that alone keeps no process alive. */
  readonly start: () => void;
  readonly stop: () => void;
}

/** @param onFault gets the errors of `look`, which is still called again */
export function repeat(
  look: () => Promise<void>,
  { intervalMs, onFault }: { readonly intervalMs: number; readonly onFault: (error: unknown) => void },
): Repetition {
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;

  function now(): void {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch(onFault)
      .catch(() => {}) // Nobody is left to be told of a fault of onFault.
      .finally(() => {
        isLooking = false;
      });
  }

  return {
    now,
    start() {
      timer = setInterval(now, intervalMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}
