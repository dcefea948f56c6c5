import { type ArrivingBody, createLargeBodies } from "./large-bodies.ts";

/** What a request holds while its body is arriving and nobody knows yet whether it is signed. */
export interface Place {
  /**
   * Says that `bytes` more have arrived. Null: go on now. Otherwise nothing more should be read until it resolves, which
   * it does not if the body is dropped meanwhile.
   */
  readonly grow: (bytes: number) => Promise<void> | null;
  /** Gives everything back; may be called more than once. */
  readonly leave: () => void;
}

export interface Admission {
  /**
   * @param declaredBytes the length the sender announced, 0 where it announced none
   * @param evict drops this request to make room for others; it has to call `leave`
   */
  readonly enter: (declaredBytes: number, evict: () => void) => Place;
}

/** A body above this is large: real pushes are far smaller. */
const smallBytes = 1024 ** 2;
/** What all small bodies together may hold. */
const smallBudgetBytes = 32 * 1024 ** 2;

/**
 * Bounds the memory that unsigned bodies can take, and lets real pushes through while others fill it: small bodies never
 * wait, and if they hold too much together, the one that has been arriving for longest is dropped. A real push arrives
 * within milliseconds, so it is the trickling ones that are dropped. Large ones have a budget of their own.
 */
export function createAdmission(): Admission {
  const small = new Set<ArrivingBody>();
  const large = createLargeBodies();
  let smallHeldBytes = 0;

  function holdSmall(body: ArrivingBody, bytes: number): void {
    small.add(body);
    smallHeldBytes += bytes;
    for (const oldest of small) {
      if (smallHeldBytes <= smallBudgetBytes) return;
      oldest.evict();
    }
  }

  function leaveSmall(body: ArrivingBody): void {
    if (small.delete(body)) smallHeldBytes -= body.heldBytes;
  }

  return {
    enter(declaredBytes, evict) {
      const body: ArrivingBody = { heldBytes: 0, evict };
      let isLarge = false;
      return {
        grow(bytes) {
          if (!isLarge && declaredBytes <= smallBytes && body.heldBytes + bytes <= smallBytes) {
            body.heldBytes += bytes;
            holdSmall(body, bytes);
            return null;
          }
          leaveSmall(body);
          const newBytes = isLarge ? bytes : body.heldBytes + bytes;
          isLarge = true;
          body.heldBytes += bytes;
          return large.grow(body, newBytes);
        },
        leave() {
          leaveSmall(body);
          if (isLarge) large.leave(body);
          body.heldBytes = 0;
        },
      };
    },
  };
}
