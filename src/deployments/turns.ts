/** The right of a project to run a deployment. */
export interface Turn {
  /** Runs `claim` if the right is free and nobody waits for it longer. Null if it is not free, or nothing was claimed. */
  readonly claim: <Claimed>(claim: () => Claimed | null) => Claimed | null;
  /** Takes the right in any case: for a script that runs already. */
  readonly hold: () => void;
  /** Lets others run, though a script of this one still watches what it has deployed. */
  readonly rest: () => void;
  /** Gives the right back, or stops waiting for it. */
  readonly leave: () => void;
}

/** The turns of all projects of a service. */
export interface Turns {
  /** Makes the turn of a project; `onFree` is called when it may try again. */
  readonly make: (onFree: () => void) => Turn;
  /**
   * Lets no further deployment start, of any project. A running script goes on.
   *
   * @param onQuiet called once, when nothing runs
   * @returns a function that ends the hold
   */
  readonly holdAll: (hold: Hold, onQuiet: () => void) => () => void;
  /** The present holds, the oldest first. */
  readonly holds: () => readonly Hold[];
}

/** Why no deployment of any project starts. It lasts as long as the command that requested it. */
export interface Hold {
  readonly sinceMs: number;
  readonly reason: string;
  /** Who requested it, as the command reported, without proof. */
  readonly heldBy: string | null;
}

/**
 * Lets at most `mostRunning` projects run at once. If several wait, the one whose last turn is longest ago is next, so a
 * project with many pushes does not keep the others waiting.
 */
export function createTurns(mostRunning: number): Turns {
  const running = new Set<Turn>();
  const resting = new Set<Turn>();
  const waiting = new Map<Turn, () => void>();
  const lastTurns = new Map<Turn, number>();
  const holds = new Map<Hold, () => void>();
  let count = 0;
  const lastOf = (turn: Turn) => lastTurns.get(turn) ?? 0;
  const mayRun = () => holds.size === 0 && running.size < mostRunning;

  function next(): Turn | null {
    const turns = [...waiting.keys()];
    return turns.reduce<Turn | null>(
      (best, turn) => (best && lastOf(best) <= lastOf(turn) ? best : turn),
      null,
    );
  }

  function callNext(): void {
    const turn = mayRun() ? next() : null;
    if (turn) setImmediate(() => waiting.get(turn)?.());
  }

  function callHolders(): void {
    if (running.size > 0 || resting.size > 0) return;
    for (const [hold, onQuiet] of holds) {
      holds.set(hold, () => {});
      onQuiet();
    }
  }

  function make(onFree: () => void): Turn {
    const turn: Turn = {
      claim(claim) {
        if (running.has(turn) || resting.has(turn)) return null;
        const first = next();
        const isNext = first === null || lastOf(turn) <= lastOf(first);
        if (!mayRun() || !isNext) {
          waiting.set(turn, onFree);
          return null;
        }
        const claimed = claim();
        waiting.delete(turn);
        if (claimed === null) callNext();
        else turn.hold();
        return claimed;
      },
      hold() {
        count += 1;
        lastTurns.set(turn, count);
        resting.delete(turn);
        running.add(turn);
      },
      rest() {
        running.delete(turn);
        resting.add(turn);
        callNext();
      },
      leave() {
        waiting.delete(turn);
        running.delete(turn);
        resting.delete(turn);
        callHolders();
        callNext();
      },
    };
    return turn;
  }

  return {
    make,
    holdAll(hold, onQuiet) {
      holds.set(hold, onQuiet);
      callHolders();
      return () => {
        if (holds.delete(hold)) callNext();
      };
    },
    holds: () => [...holds.keys()],
  };
}
