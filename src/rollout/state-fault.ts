import { ProblemError } from "../problems.ts";

/**
 * What to throw where working with the file of a roll-out's state at `path` failed with `error`: ProblemError
 * `state_unusable` where the system refused (no permission, no directory, no room), else `error` itself.
 *
 * @param consequence a sentence on what that means
 */
export function stateFault(path: string, error: unknown, consequence = ""): unknown {
  if (!(error instanceof Error && "syscall" in error)) return error;
  const detail =
    `${path} cannot be used (${error.message}). Make it and its directory writable for this user, free some space where there is none, or set STATE_PATH to another directory. ${consequence}`.trimEnd();
  return new ProblemError({ code: "state_unusable", detail }, error);
}
