import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A deploy.sh that reports its start and runs until `letGo`, then exits with the code in that file. */
export const waitingScript = `#!/bin/sh
echo started
while [ ! -e "$REPO_PATH/go" ] && [ -d "$REPO_PATH" ]; do sleep 0.02; done
exit "$(cat "$REPO_PATH/go")"
`;

/** A deploy.sh that adds its deployment's id to the file `runs`, reports its start and runs until `letGo`. */
export const patientScript = `#!/bin/sh
echo "$DEPLOY_ID" >>runs
echo up
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
`;

/** Makes the waiting script, and all later ones, exit with `exitCode`. The script never sees a file without the code. */
export function letGo(repoPath: string, exitCode = 0): void {
  const path = join(repoPath, "go");
  writeFileSync(`${path}.new`, String(exitCode));
  renameSync(`${path}.new`, path);
}
