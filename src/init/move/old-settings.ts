import { withoutVariable } from "../../platform/env-file.ts";

/** What `init` wrote into `.env` for the Hotpush of a single project. */
const written: readonly string[] = [
  "WEBHOOK_SECRET",
  "WEBHOOK_SECRET_PREVIOUS",
  "REPO_PATH",
  "REPOSITORY",
  "BRANCH",
  "WEBHOOK_URL",
  "HOTPUSH_GIT_HOST",
  "HOTPUSH_USER",
  "DOCKER_GID",
  "DOCKER_SOCKET",
  "HOTPUSH_SSH",
  "HOTPUSH_IMAGE",
  "SITE",
  "HOTPUSH_APP",
];

/**
 * The text of `.env` without the lines that only the Hotpush of a single project needs. A person's lines stay, and so do
 * variables that their compose files use.
 */
export function withoutOldSettings(text: string, composeTexts: readonly string[]): string {
  const unused = written.filter((name) => !composeTexts.some((one) => uses(one, name)));
  return unused.reduce(withoutVariable, text);
}

function uses(text: string, name: string): boolean {
  return new RegExp(`\\$\\{?${name}\\b`).test(text);
}
