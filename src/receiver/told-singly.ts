/** How many events of one kind are told each for itself in a stretch of time; what is more is counted. */
export interface ToldSinglyOptions<Kind> {
  readonly most: number;
  readonly stretchMs: number;
  /** Told at the end of a stretch how many more there were. */
  readonly tellMore: (kind: Kind, count: number) => void;
}

/**
 * Makes the question whether the event that has just come is to be told for itself: a flood of them must neither fill a
 * disk with log lines, nor slow down what is not part of it.
 */
export function createToldSingly<Kind>({ most, stretchMs, tellMore }: ToldSinglyOptions<Kind>) {
  const counts = new Map<Kind, number>();

  function endStretch(kind: Kind): void {
    const count = counts.get(kind) ?? 0;
    counts.delete(kind);
    if (count > most) tellMore(kind, count - most);
  }

  return (kind: Kind): boolean => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    if (count === 1) setTimeout(() => endStretch(kind), stretchMs).unref();
    return count <= most;
  };
}
