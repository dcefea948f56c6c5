/** A body that is arriving, while nobody knows yet whether it is signed. Only what has arrived counts. */
export interface ArrivingBody {
  heldBytes: number;
  isLarge: boolean;
  /** Drops the request to make room for others; it calls `leave`. */
  readonly evict: () => void;
}

/** Bounds the memory that unsigned bodies can take, and lets real pushes through while others fill it. */
export interface BodyBudget {
  /** @param declaredBytes the length that the sender announced, 0 if it announced none */
  readonly enter: (declaredBytes: number, evict: () => void) => ArrivingBody;
  /**
   * Notes that `bytes` more have arrived. Null: read on. Otherwise nothing more should be read until it resolves; it never
   * does if the body is dropped meanwhile.
   */
  readonly grow: (body: ArrivingBody, bytes: number) => Promise<void> | null;
  /** Gives everything back; may be called more than once. */
  readonly leave: (body: ArrivingBody) => void;
}

/** A body above this is large: real pushes are far smaller. */
const smallBytes = 1024 ** 2;
/** What all small bodies together may hold. */
const smallBudgetBytes = 32 * 1024 ** 2;

/**
 * Small bodies never wait. If they hold too much together, the one that has been arriving for longest is dropped: a real
 * push arrives within milliseconds, so this drops those that trickle. Large ones have a budget of their own.
 */
export function createBodyBudget(): BodyBudget {
  const small = new Set<ArrivingBody>();
  const large = createLargeBudget();
  let smallHeldBytes = 0;

  function growSmall(body: ArrivingBody, bytes: number): null {
    body.heldBytes += bytes;
    smallHeldBytes += bytes;
    small.add(body);
    for (const oldest of small) {
      if (smallHeldBytes <= smallBudgetBytes) break;
      oldest.evict();
    }
    return null;
  }

  function leaveSmall(body: ArrivingBody): void {
    if (small.delete(body)) smallHeldBytes -= body.heldBytes;
  }

  return {
    enter: (declaredBytes, evict) => ({ heldBytes: 0, isLarge: declaredBytes > smallBytes, evict }),
    grow(body, bytes) {
      if (!body.isLarge && body.heldBytes + bytes <= smallBytes) return growSmall(body, bytes);
      leaveSmall(body);
      const newBytes = body.isLarge ? bytes : body.heldBytes + bytes;
      body.isLarge = true;
      body.heldBytes += bytes;
      return large.grow(body, newBytes);
    },
    leave(body) {
      leaveSmall(body);
      if (body.isLarge) large.leave(body);
      body.heldBytes = 0;
    },
  };
}

/** What large bodies may hold before some of them wait. */
const largeBudgetBytes = 32 * 1024 ** 2;
/** How many are still read, so that some are finished. */
const turnCount = 2;
/** Beyond it the one that waits for longest is dropped. Their bytes are within the budget, with room to read others. */
const mostWaiting = 256;
/** What Node reads of a connection at once: at least this much comes of a body that is resumed. */
const partBytes = 64 * 1024;
/** While others wait, a body that does not send this much within some checks is dropped. */
const progressBytes = 16 * 1024;
const checkEveryMs = 100;
/** Checks and not time, since a busy process would otherwise blame senders for what it has not read itself. */
const stallChecks = 5;
/** Of one that has waited, more should be in the kernel's buffers already. */
const resumedStallChecks = 3;

/**
 * While large bodies hold little, all are read. Beyond it the two that have sent most are read on and the others wait
 * unread, which costs their senders the memory. A body that stalls while others wait is dropped: a sender who sends does
 * not wait for one who does not.
 */
function createLargeBudget(): Pick<BodyBudget, "grow" | "leave"> {
  /** The check before which a body must send more, and what it has sent towards that. */
  const reading = new Map<ArrivingBody, { readonly lastCheck: number; newBytes: number }>();
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
    const least = turns.size < turnCount ? undefined : largestFirst(turns).at(-1);
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
    const readOn = waiting.get(body);
    waiting.delete(body);
    reading.set(body, { lastCheck: check + resumedStallChecks, newBytes: 0 });
    readOn?.();
  }

  function resumeWaiting(): void {
    const most = turns.size < turnCount ? largestFirst(waiting.keys())[0] : undefined;
    if (most && takeTurn(most)) resume(most);
    let freeBytes = largeBudgetBytes - heldBytes;
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
      return heldBytes <= largeBudgetBytes || takeTurn(body) ? null : wait(body);
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

function largestFirst(bodies: Iterable<ArrivingBody>): ArrivingBody[] {
  return Array.from(bodies).sort((one, other) => other.heldBytes - one.heldBytes);
}
