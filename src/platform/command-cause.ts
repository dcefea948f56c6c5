import { withoutCredentials } from "./git.ts";
import { withoutSteering } from "./terminal.ts";

const maxCharacters = 200;

/** Progress, warnings, and what is quoted above a message of buildkit. */
const noise = /^(?:\s|#\d+ |-+$|time="[^"]*" level=(?:warning|info|debug) |$)/;
const failedProcess = /process ".*" did not complete successfully: exit code: \d+$/;
const complaints = /error|fail|fatal|cannot|could not|unable|denied|not found|no such|no space/i;

/** What repeats itself, or means nothing to people. */
const shorter: readonly (readonly [RegExp, string])[] = [
  [/^(?:target \S+: )?failed to solve: /, "failed to solve: "],
  [/^Error response from daemon: /, ""],
  [/\b([0-9a-f]{12})[0-9a-f]{52}\b/g, "$1"],
  [/(not found): stat .*: no such file or directory$/, "$1"],
  [/failed to compute cache key: failed to calculate checksum of ref \S+: /, ""],
  [/: \S+: failed to resolve source metadata for (\S+: )(?:\1)?/, ": $1"],
];

const remedies: readonly (readonly [RegExp, string])[] = [
  [/\bopen .*: permission denied$/, "Let the owner of the checkout read it, or list it in .dockerignore"],
  [/the Dockerfile cannot be empty/, "Check that the owner of the checkout may read it"],
  [/"\/.*": not found$/, "Check that it is in git, and not in .dockerignore"],
  [
    /SSH_AUTH_SOCK/,
    "No agent of a person runs here: name a key in the compose file, ssh: [default=/path/of/the/key]",
  ],
  [/port is already allocated|address already in use$/, "Find what uses it: docker ps, ss -ltnp"],
  [/no space left on device/i, "Free some space: hotpush prune"],
  [
    /pull access denied|unauthorized|access to the resource is denied|403 Forbidden/i,
    "Check its name. For a private image run, as the owner of the checkout: docker login",
  ],
  [/manifest unknown|name unknown|[^"]: not found$/, "Check the image's name, and that it is pushed"],
];

/**
 * Finds why docker, compose or a build failed.
 *
 * @param lines its last ones
 * @returns one line of at most 300 characters, without a period at its end, with a remedy if one is known; null if they don't say why
 */
export function causeIn(lines: readonly string[]): string | null {
  // The reason of a failure can become public, as the status of its commit.
  const said = lines.map((line) => withoutCredentials(withoutSteering(line, { kept: "\t" })).trimEnd());
  const messages = said.filter((line) => !noise.test(line));
  const message = messages.findLast((line) => line.includes("failed to solve: ")) ?? messages.at(-1);
  if (message === undefined) return null;
  const output = failedProcess.test(message) ? outputOfStep(said) : "";
  const whole =
    shorter.reduce((text, [long, short]) => text.replace(long, short), message).replace(/\.$/, "") + output;
  const remedy = remedies.find(([symptom]) => symptom.test(whole))?.[1];
  // The cause comes last: `failed to solve: process "…": exit code: 1: no such module`.
  const cause = whole.length > maxCharacters ? `…${whole.slice(1 - maxCharacters)}` : whole;
  return remedy === undefined ? cause : `${cause}. ${remedy}`;
}

/** What the failed step of a build complained of: buildkit repeats its last lines, with their times, between two lines of dashes. */
function outputOfStep(lines: readonly string[]): string {
  const end = lines.lastIndexOf("------");
  const printed = lines
    .slice(0, Math.max(0, end))
    .flatMap((line) => /^\d+\.\d+ (.*\S)/.exec(line)?.[1] ?? []);
  const complaint = printed.find((line) => complaints.test(line)) ?? printed.at(-1);
  return complaint === undefined ? "" : `: ${complaint.slice(0, maxCharacters / 2)}`;
}
