/** Lets works have their turn, in the order in which they came. */
export interface Turns {
  /** Does `work` beside others, as long as the machine has room for its `bytes` of memory. */
  readonly beside: Turn<[bytes: number]>;
  /** Does `work` while nothing else has its turn. */
  readonly alone: Turn<[]>;
}

type Turn<Needs extends readonly unknown[]> = <Result>(
  ...args: [...Needs, work: () => Promise<Result>]
) => Promise<Result>;

/** Both ends of what a machine can do at the same time. */
export interface Room {
  readonly works: number;
  readonly bytes: number;
}

interface Waiting {
  readonly bytes: number;
  readonly isAlone: boolean;
  readonly begin: () => void;
}

/** Makes turns for a machine with `room`. A work that needs more than all of it has its turn when no other has. */
export function createTurns(room: Room): Turns {
  const waiting: Waiting[] = [];
  const held = { works: 0, bytes: 0, isAlone: false };

  function fits({ bytes, isAlone }: Waiting): boolean {
    if (held.works === 0) return true;
    return !isAlone && !held.isAlone && held.works < room.works && held.bytes + bytes <= room.bytes;
  }

  function beginNext(): void {
    for (let [next] = waiting; next !== undefined && fits(next); [next] = waiting) {
      waiting.shift();
      held.works += 1;
      held.bytes += next.bytes;
      held.isAlone = next.isAlone;
      next.begin();
    }
  }

  async function inTurn<Result>(
    bytes: number,
    isAlone: boolean,
    work: () => Promise<Result>,
  ): Promise<Result> {
    await new Promise<void>((begin) => {
      waiting.push({ bytes, isAlone, begin });
      beginNext();
    });
    try {
      return await work();
    } finally {
      held.works -= 1;
      held.bytes -= bytes;
      held.isAlone = false;
      beginNext();
    }
  }

  return {
    beside: (bytes, work) => inTurn(bytes, false, work),
    alone: (work) => inTurn(0, true, work),
  };
}
