import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { readVersion } from "../version.ts";
import { SetupError } from "./setup-error.ts";

/** What this Hotpush was started from: a checkout, or an installed package. */
export const ownRoot = findOwnRoot(import.meta.dirname);

/** The image is built from this very Hotpush, since what the project is set up by is what should deploy it. */
export const ownImage = `hotpush:${readVersion()}`;

const label = "hotpush.sources";
/** What goes into the image, as .dockerignore has it. */
const sources = ["Dockerfile", "package.json", "package-lock.json", "bin", "examples", "src", "dist"];
const run = promisify(execFile);

/** Whether the image is on this machine, made of these very sources. */
export async function hasOwnImage(env: NodeJS.ProcessEnv): Promise<boolean> {
  const format = `{{index .Config.Labels "${label}"}}`;
  try {
    const { stdout } = await run("docker", ["image", "inspect", "--format", format, ownImage], { env });
    return stdout.trim() === sourcesDigest();
  } catch {
    return false;
  }
}

/**
 * Builds the image; what Docker says of it goes to standard error.
 *
 * @throws SetupError where that did not end well
 */
export async function buildOwnImage(env: NodeJS.ProcessEnv): Promise<void> {
  if (!existsSync(join(ownRoot, "Dockerfile"))) {
    throw new SetupError(
      `There is no Dockerfile in ${ownRoot} to build Hotpush's image from. Set HOTPUSH_IMAGE in .env to an image of Hotpush.`,
    );
  }
  const args = ["build", "--tag", ownImage, "--label", `${label}=${sourcesDigest()}`, ownRoot];
  const child = spawn("docker", args, { env, stdio: ["ignore", process.stderr, process.stderr] });
  const code = await new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(null));
    child.once("exit", resolve);
  });
  if (code === 0) return;
  throw new SetupError(
    "Hotpush's image could not be built, for the reason above. The files are written; when it is mended, run this again.",
  );
}

/** Of every file that goes into the image, by its name and content. */
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
