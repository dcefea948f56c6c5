/** The right of a project to run a deployment. */
export interface Turn {
  /** Runs `claim` if the right is free and nobody waits for it longer. Null if it is not free, or nothing was claimed. */
  readonly claim: <Claimed>(claim: () => Claimed | null) => Claimed | null;
  /** Takes the right in any case: for a script that runs already. */
  readonly hold: () => void;
  /** Gives the right back, or stops waiting for it. */
  readonly leave: () => void;
}

/**
 * Lets at most `mostRunning` projects run at once. If several wait, the one whose last turn is longest ago is next, so a
 * project with many pushes does not keep the others waiting.
 *
 * @returns a function that makes the turn of a project; `onFree` is called when it may try again
 */
export function createTurns(mostRunning: number): (onFree: () => void) => Turn {
  const running = new Set<Turn>();
  const waiting = new Map<Turn, () => void>();
  const lastTurns = new Map<Turn, number>();
  let count = 0;
  const lastOf = (turn: Turn) => lastTurns.get(turn) ?? 0;

  function next(): Turn | null {
    const turns = [...waiting.keys()];
    return turns.reduce<Turn | null>(
      (best, turn) => (best && lastOf(best) <= lastOf(turn) ? best : turn),
      null,
    );
  }

  function callNext(): void {
    const turn = running.size < mostRunning ? next() : null;
    if (turn) setImmediate(() => waiting.get(turn)?.());
  }

  return (onFree) => {
    const turn: Turn = {
      claim(claim) {
        if (running.has(turn)) return null;
        const first = next();
        const isNext = first === null || lastOf(turn) <= lastOf(first);
        if (running.size >= mostRunning || !isNext) {
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
        running.add(turn);
      },
      leave() {
        waiting.delete(turn);
        running.delete(turn);
        callNext();
      },
    };
    return turn;
  };
}
