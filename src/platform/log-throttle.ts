/**
 * Decides whether an event may be logged: at most `most` of a kind in `windowMs`, so that a flood neither fills a disk nor
 * slows down anything else.
 *
 * @param logMore called at the end of the window with the number of events that were not logged, if any
 */
export function createLogThrottle<Kind>(
  most: number,
  windowMs: number,
  logMore: (kind: Kind, count: number) => void,
): (kind: Kind) => boolean {
  const counts = new Map<Kind, number>();

  function endWindow(kind: Kind): void {
    const count = counts.get(kind) ?? 0;
    counts.delete(kind);
    if (count > most) logMore(kind, count - most);
  }

  return (kind) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    if (count === 1) setTimeout(() => endWindow(kind), windowMs).unref();
    return count <= most;
  };
}
