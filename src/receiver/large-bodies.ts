/** A body that is arriving. Only what has arrived counts: an announcement holds nothing. */
export interface ArrivingBody {
  heldBytes: number;
  readonly evict: () => void;
}

export interface LargeBodies {
  /** Says that `bytes` more of `body` have arrived. Null: go on; otherwise wait for it to resolve. */
  readonly grow: (body: ArrivingBody, bytes: number) => Promise<void> | null;
  /** Forgets `body`, which still has its count of held bytes. */
  readonly leave: (body: ArrivingBody) => void;
}

interface Progress {
  /** The check at which the body is dropped unless `progressBytes` more have come. */
  readonly lastCheck: number;
  newBytes: number;
}

/** What large bodies may hold before some of them have to wait. */
const budgetBytes = 32 * 1024 ** 2;
/** How many are read on all the same, so that some are finished. */
const turnCount = 2;
/** Beyond it the one that waits for longest is dropped. What they hold is within the budget, with room to read others. */
const mostWaiting = 256;
/** What Node reads of a connection at once: as much comes at least of a body that goes on. */
const partBytes = 64 * 1024;
/** While others wait, a body has to send this much within some checks, or it is dropped. */
const progressBytes = 16 * 1024;
const checkEveryMs = 100;
/** Checks and not time, since a busy process would otherwise blame senders for what it has not read itself. */
const stallChecks = 5;
/** Of one that has waited, more should be in the kernel's buffers already. */
const resumedStallChecks = 3;

/**
 * Bounds what large bodies hold. While that is little, all are read. Beyond it the two that have sent most are read on and
 * the others wait unread, which costs their senders the memory. A body that stalls while others wait is dropped: a sender
 * who sends does not wait for one who does not.
 */
export function createLargeBodies(): LargeBodies {
  const reading = new Map<ArrivingBody, Progress>();
  const waiting = new Map<ArrivingBody, () => void>();
  const turns = new Set<ArrivingBody>();
  let heldBytes = 0;
  let check = 0;
  let timer: NodeJS.Timeout | undefined;

  function noteProgress(body: ArrivingBody, bytes: number): void {
    const progress = reading.get(body);
    if (progress && progress.newBytes + bytes < progressBytes) progress.newBytes += bytes;
    else reading.set(body, { lastCheck: check + stallChecks, newBytes: 0 });
  }

  function takeTurn(body: ArrivingBody): boolean {
    if (turns.has(body)) return true;
    const least = turns.size < turnCount ? undefined : leastOf(turns);
    if (least && least.heldBytes >= body.heldBytes) return false;
    if (least) turns.delete(least);
    turns.add(body);
    return true;
  }

  function wait(body: ArrivingBody): Promise<void> {
    reading.delete(body);
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(body, resolve);
    const [first] = waiting.keys();
    if (waiting.size > mostWaiting) first?.evict();
    return promise;
  }

  function dropStalled(): void {
    check += 1;
    if (waiting.size === 0) return;
    for (const [body, { lastCheck }] of reading) {
      if (check > lastCheck) body.evict();
    }
  }

  function resume(body: ArrivingBody): void {
    const go = waiting.get(body);
    waiting.delete(body);
    reading.set(body, { lastCheck: check + resumedStallChecks, newBytes: 0 });
    go?.();
  }

  function resumeWaiting(): void {
    const most = turns.size < turnCount ? mostOf(waiting.keys()) : undefined;
    if (most && takeTurn(most)) resume(most);
    let freeBytes = budgetBytes - heldBytes;
    for (const body of waiting.keys()) {
      freeBytes -= 2 * partBytes;
      if (freeBytes < 0) break;
      resume(body);
    }
  }

  return {
    grow(body, bytes) {
      heldBytes += bytes;
      timer ??= setInterval(dropStalled, checkEveryMs).unref();
      noteProgress(body, bytes);
      return heldBytes <= budgetBytes || takeTurn(body) ? null : wait(body);
    },
    leave(body) {
      if (!reading.delete(body) && !waiting.delete(body)) return;
      turns.delete(body);
      heldBytes -= body.heldBytes;
      resumeWaiting();
      if (reading.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}

/** The body that has sent most; among equals the first. */
function mostOf(bodies: Iterable<ArrivingBody>): ArrivingBody | undefined {
  let most: ArrivingBody | undefined;
  for (const body of bodies) if (!most || body.heldBytes > most.heldBytes) most = body;
  return most;
}

/** The body that has sent least; among equals the first. */
function leastOf(bodies: Iterable<ArrivingBody>): ArrivingBody | undefined {
  let least: ArrivingBody | undefined;
  for (const body of bodies) if (!least || body.heldBytes < least.heldBytes) least = body;
  return least;
}
