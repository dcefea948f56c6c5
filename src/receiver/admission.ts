/** What a request holds while its body is arriving and nobody knows yet whether it is signed. */
export interface Place {
  /**
   * Says that `bytes` more have arrived. Resolves at once for a small body; a large one waits its turn, and nothing
   * more should be read until it has it. Null: go on now.
   */
  readonly grow: (bytes: number) => Promise<void> | null;
  /** Gives everything back; may be called more than once. */
  readonly leave: () => void;
}

export interface Admission {
  /**
   * @param declaredBytes the length the sender announced, 0 where it announced none
   * @param evict called where this request is dropped to make room for others
   */
  readonly enter: (declaredBytes: number, evict: () => void) => Place;
}

/** A body above this is large: real pushes are far smaller. */
const smallBytes = 1024 ** 2;
/** How many large bodies are read at the same time; the others wait unread, which costs their sender the memory. */
const largeAtOnce = 2;
/** What all small bodies together may hold. */
const smallBudgetBytes = 48 * 1024 ** 2;

/**
 * Bounds the memory that unsigned bodies can take without ever refusing a real push: small bodies never wait, and
 * where they hold too much together, the one that has been arriving for longest is dropped. A real push arrives within
 * milliseconds, so it is the trickling ones that go.
 */
export function createAdmission(): Admission {
  const waiting: (() => void)[] = [];
  const small = new Map<symbol, { heldBytes: number; readonly evict: () => void }>();
  let largeCount = 0;
  let smallHeldBytes = 0;

  function takeLargeSlot(): Promise<void> | null {
    if (largeCount < largeAtOnce) {
      largeCount += 1;
      return null;
    }
    return new Promise((resolve) => waiting.push(resolve));
  }

  function giveLargeSlot(): void {
    const next = waiting.shift();
    if (next) next();
    else largeCount -= 1;
  }

  function dropFromSmall(id: symbol): void {
    smallHeldBytes -= small.get(id)?.heldBytes ?? 0;
    small.delete(id);
  }

  function evictOldest(): void {
    for (const [id, { evict }] of small) {
      if (smallHeldBytes <= smallBudgetBytes) return;
      dropFromSmall(id);
      evict();
    }
  }

  return {
    enter(declaredBytes, evict) {
      const id = Symbol();
      let lane: "none" | "small" | "waiting" | "large" | "left" = "none";
      let ownTurn: (() => void) | null = null;

      function goLarge(): Promise<void> | null {
        dropFromSmall(id);
        const turn = takeLargeSlot();
        lane = turn ? "waiting" : "large";
        if (!turn) return null;
        ownTurn = waiting.at(-1) ?? null;
        return turn.then(() => {
          if (lane === "left") giveLargeSlot();
          else lane = "large";
        });
      }

      return {
        grow(bytes) {
          if (lane === "large" || lane === "left") return null;
          const held = (small.get(id)?.heldBytes ?? 0) + bytes;
          if (declaredBytes > smallBytes || held > smallBytes) return goLarge();
          lane = "small";
          small.set(id, { heldBytes: held, evict });
          smallHeldBytes += bytes;
          evictOldest();
          return null;
        },
        leave() {
          if (lane === "large") giveLargeSlot();
          if (lane === "waiting" && ownTurn) removeFrom(waiting, ownTurn);
          dropFromSmall(id);
          lane = "left";
        },
      };
    },
  };
}

function removeFrom<Item>(list: Item[], item: Item): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}
