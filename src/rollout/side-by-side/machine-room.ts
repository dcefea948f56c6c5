/** Lets works begin in the order in which they came, as far as the machine has room for them. */
export interface MachineRoom {
  /** Does `work` beside others, as long as the machine has room for its `bytes` of memory. */
  readonly beside: Turn<[bytes: number]>;
  /** Does `work` while nothing else goes on. */
  readonly alone: Turn<[]>;
}

type Turn<Needs extends readonly unknown[]> = <Result>(
  ...args: [...Needs, work: () => Promise<Result>]
) => Promise<Result>;

/** The most that a machine does at the same time. */
export interface RoomLimits {
  readonly works: number;
  readonly bytes: number;
}

interface Waiting {
  readonly bytes: number;
  readonly isAlone: boolean;
  readonly begin: () => void;
}

/** Makes the room of a machine with these limits. A work that needs more than all of it begins when no other goes on. */
export function createMachineRoom(limits: RoomLimits): MachineRoom {
  const waiting: Waiting[] = [];
  const held = { works: 0, bytes: 0, isAlone: false };

  function fits({ bytes, isAlone }: Waiting): boolean {
    if (held.works === 0) return true;
    return !isAlone && !held.isAlone && held.works < limits.works && held.bytes + bytes <= limits.bytes;
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
