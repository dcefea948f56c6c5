import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A deploy.sh that says that it has started and goes on until `letGo`, then ends with the exit code in that file. */
export const waitingScript = `#!/bin/sh
echo started
while [ ! -e "$REPO_PATH/go" ] && [ -d "$REPO_PATH" ]; do sleep 0.02; done
exit "$(cat "$REPO_PATH/go")"
`;

/** Lets the waiting script, and all that start after it, end with `exitCode`. */
export function letGo(repoPath: string, exitCode = 0): void {
  writeFileSync(join(repoPath, "go"), String(exitCode));
}
