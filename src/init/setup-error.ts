/** Why a project can't be set up, as sentences for a person: what is wrong, and what to do. */
export class SetupError extends Error {
  override readonly name = "SetupError";
}
