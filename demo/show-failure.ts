import { Unexpected } from "./expect.ts";

/** Prints to standard error what was expected, and the last lines of the service's log. */
export function showFailure(error: unknown, logTail: readonly string[]): void {
  console.error("\nThe tour ends here: something did not happen as expected.\n");
  if (error instanceof Unexpected) console.error(error.message);
  else console.error(error);
  if (logTail.length > 0) console.error("\nThe last lines of the service's log:\n");
  for (const line of logTail) console.error(`  ${line}`);
}
