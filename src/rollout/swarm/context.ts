import type { Rollout } from "../context.ts";
import type { Stack } from "./stack.ts";

/** What every step of a stack's roll-out works with. */
export interface StackRollout extends Rollout {
  readonly project: Stack;
}
