import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A deploy.sh that says that it has started and goes on until `letGo`, then ends with the exit code in that file. */
export const waitingScript = `#!/bin/sh
echo started
while [ ! -e "$REPO_PATH/go" ] && [ -d "$REPO_PATH" ]; do sleep 0.02; done
exit "$(cat "$REPO_PATH/go")"
`;

/** A deploy.sh that adds its deployment's id to the file `runs`, says that it is up and goes on until `letGo`. */
export const patientScript = `#!/bin/sh
echo "$DEPLOY_ID" >>runs
echo up
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
`;

/** Lets the waiting script, and all that start after it, end with `exitCode`. */
export function letGo(repoPath: string, exitCode = 0): void {
  writeFileSync(join(repoPath, "go"), String(exitCode));
}
