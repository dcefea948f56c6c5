import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { outputOf, runInForeground } from "#platform/run-command";
import { readVersion } from "#version";
import { SetupError } from "./planned-file.ts";

/** The directory of the Hotpush that runs: a checkout, or an installed package. */
export const ownRoot = findOwnRoot(import.meta.dirname);

/** Built from the Hotpush that runs: the version that sets a project up is the one that deploys it. */
export const ownImage = `hotpush:${readVersion()}`;

const sourcesLabel = "hotpush.sources";
const inspectTimeoutMs = 60_000;
/** The content of the image, as in .dockerignore. */
const sources = ["Dockerfile", "package.json", "package-lock.json", "bin", "examples", "src", "dist"];

/** Whether the image is on this machine, built from these very sources. */
export async function hasOwnImage(env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await sourcesOfOwnImage(env)) === sourcesDigest();
}

/** Whether an image of this version is on this machine, from whatever sources. */
export async function hasImageOfVersion(env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await sourcesOfOwnImage(env)) !== null;
}

/** @returns their digest; null without an image */
async function sourcesOfOwnImage(env: NodeJS.ProcessEnv): Promise<string | null> {
  const format = `{{index .Config.Labels "${sourcesLabel}"}}`;
  const argv = ["docker", "image", "inspect", "--format", format, ownImage] as const;
  return await outputOf(argv, { env, timeoutMs: inspectTimeoutMs });
}

/**
 * Builds the image; Docker's output, and that it takes a while, go to standard error.
 *
 * @throws SetupError if that fails
 */
export async function buildOwnImage(env: NodeJS.ProcessEnv): Promise<void> {
  if (!existsSync(join(ownRoot, "Dockerfile"))) {
    throw new SetupError(
      `There is no Dockerfile in ${ownRoot} to build Hotpush's image from. Set HOTPUSH_IMAGE in .env to an image of Hotpush.`,
    );
  }
  process.stderr.write(`Building the image ${ownImage}; the first time takes a minute or two.\n`);
  const label = `${sourcesLabel}=${sourcesDigest()}`;
  const code = await runInForeground(["docker", "build", "--tag", ownImage, "--label", label, ownRoot], env);
  if (code === 0) return;
  throw new SetupError(
    "Hotpush's image could not be built, for the reason above. The files are written; when the cause is fixed, run this again.",
  );
}

/** A digest of the names and contents of all files in the image. */
function sourcesDigest(): string {
  const hash = createHash("sha256");
  for (const name of sources) addTo(hash, name);
  return hash.digest("hex");
}

function addTo(hash: ReturnType<typeof createHash>, name: string): void {
  for (const file of filesIn(join(ownRoot, name))) {
    hash
      .update(`${file.slice(ownRoot.length)}\0`)
      .update(readFileSync(file))
      .update("\0");
  }
}

function filesIn(path: string): readonly string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isDirectory()) return stats ? [path] : [];
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

function findOwnRoot(directory: string): string {
  return existsSync(join(directory, "package.json")) ? directory : findOwnRoot(dirname(directory));
}
