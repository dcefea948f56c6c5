import type { RolloutContext } from "../context.ts";
import type { Stack } from "./stack.ts";

/** What the steps of a stack's roll-out work with. */
export interface StackRollout extends RolloutContext {
  readonly project: Stack;
}
