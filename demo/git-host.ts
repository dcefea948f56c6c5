import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { git, type Place } from "./git.ts";

const hookPath = fileURLToPath(new URL("git-host/post-receive.ts", import.meta.url));

/** Makes the bare repository that acts as the git host, at `place`. */
export async function makeGitHost(place: Place): Promise<void> {
  mkdirSync(dirname(place.path), { recursive: true });
  const parent = { ...place, path: dirname(place.path) };
  await git(parent, "init", "--quiet", "--bare", "--initial-branch=main", place.path);
  // Housekeeping would continue in the background after the push.
  await git(place, "config", "receive.autoGc", "false");
}

/** Adds a webhook: every push is delivered to `url` from now on. */
export function addWebhook(
  { path }: Place,
  webhook: { readonly url: string; readonly secretPath: string },
): void {
  writeFileSync(join(path, "webhook.json"), JSON.stringify(webhook));
  mkdirSync(join(path, "hooks"), { recursive: true });
  const hook = `#!/bin/sh\nexec ${quote(process.execPath)} ${quote(hookPath)}\n`;
  writeFileSync(join(path, "hooks/post-receive"), hook, { mode: 0o755 });
}

/** `text` as one word for a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
