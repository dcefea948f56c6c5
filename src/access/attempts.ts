/** Limits how often a wrong credential may be tried. */
export interface Attempts {
  /** @returns in how many seconds the next one may be made; 0: at once */
  readonly waitSeconds: (address: string, nowMs: number) => number;
  readonly noteFailure: (address: string, nowMs: number) => void;
}

/** A person who pastes an old link tries once or twice. */
const mostFailures = 10;
const windowMs = 60_000;
/** An attacker may use many addresses; the memory for them is bounded, and all others then count as one. */
const mostAddresses = 1_000;
const others = "others";

interface Window {
  readonly startMs: number;
  failures: number;
}

export function createAttempts(): Attempts {
  const windows = new Map<string, Window>();

  function windowOf(address: string, nowMs: number): Window | null {
    const window = windows.get(address);
    if (window === undefined || nowMs - window.startMs >= windowMs) return null;
    return window;
  }

  const keyOf = (address: string) =>
    windows.has(address) || windows.size < mostAddresses ? address : others;

  function forgetOld(nowMs: number): void {
    for (const [address, { startMs }] of windows) if (nowMs - startMs >= windowMs) windows.delete(address);
  }

  return {
    waitSeconds(address, nowMs) {
      const window = windowOf(keyOf(address), nowMs);
      if (window === null || window.failures < mostFailures) return 0;
      return Math.ceil((window.startMs + windowMs - nowMs) / 1000);
    },
    noteFailure(address, nowMs) {
      forgetOld(nowMs);
      const key = keyOf(address);
      const window = windowOf(key, nowMs) ?? { startMs: nowMs, failures: 0 };
      window.failures += 1;
      windows.set(key, window);
    },
  };
}
