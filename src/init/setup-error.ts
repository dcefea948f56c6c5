import { CommandError } from "../problems.ts";

/** A project cannot be set up. The message says what is wrong and what to do. */
export class SetupError extends CommandError {
  override readonly name = "SetupError";
}
