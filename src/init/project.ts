import { existsSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseEnv } from "node:util";
import type { Environment } from "../config/settings.ts";
import { type Branch, branches } from "../config/settings.ts";
import { composeFileNames, composeOverrideNames, namedFiles } from "../platform/compose/commands.ts";
import { readForeignFile } from "../platform/foreign-files.ts";
import { refusesOwner } from "../platform/git.ts";
import { type GitRemote, parseRemoteUrl, readRemoteBranch, readRemoteUrl, tryGit } from "./git-checkout.ts";
import { type GitHost, gitHostOf } from "./git-host.ts";
import { SetupError } from "./setup-error.ts";

/** The file of ours in a checkout that joins the project's services to Caddy. */
export const ownComposeFile = "compose.hotpush.yaml";

/** A project that is set up. */
export interface SetupProject {
  /** Root of the git checkout. */
  readonly root: string;
  readonly remoteUrl: string | null;
  /** null if there is no remote, or it is a path on this machine. */
  readonly remote: GitRemote | null;
  /** null if the remote's name does not show it. */
  readonly host: GitHost | null;
  /** The branch to deploy: BRANCH of the settings, else the remote's HEAD; null if that is neither main nor master. */
  readonly branch: Branch | null;
  /** The present variables of `.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The project's own compose files, absolute, in order; empty if it has none. */
  readonly composeFiles: readonly string[];
}

/**
 * Reads the project around `directory`.
 *
 * @param settingsOf gives the settings of the checkout in `root` if they are not in its `.env`
 * @throws SetupError if it is not a git checkout that this user may use, or compose would take another directory for it
 */
export async function findProject(
  directory: string,
  settingsOf: (root: string) => Environment | null = () => null,
): Promise<SetupProject> {
  const root = await findRoot(directory);
  const remoteUrl = await readRemoteUrl(root);
  const remote = remoteUrl === null ? null : parseRemoteUrl(remoteUrl);
  const env = readDotenv(root);
  const host = remote && gitHostOf(remote);
  const { BRANCH } = settingsOf(root) ?? env;
  const branch = branches.find((one) => one === BRANCH) ?? (await readRemoteBranch(root));
  const project = { root, remoteUrl, remote, host, branch, env, composeFiles: findComposeFiles(root, env) };
  refuseOtherDirectory(project);
  return project;
}

async function findRoot(directory: string): Promise<string> {
  const ending = await tryGit(directory, "rev-parse", "--show-toplevel");
  if (ending.kind === "exited" && ending.code === 0 && ending.output.trim() !== "")
    return ending.output.trim();
  if (ending.kind === "not_found") {
    throw new SetupError("git is not installed. Install it (Debian: apt-get install git).");
  }
  if (refusesOwner(ending)) {
    throw new SetupError(
      `${directory} belongs to another user, so git refuses it. Run this as that user; or, if you trust them: git config --global --add safe.directory ${directory}`,
    );
  }
  throw new SetupError(
    `${directory} is not in a git checkout. Hotpush deploys a checkout: clone your project on this machine, go to its directory, and run this again.`,
  );
}

/** Larger than any file of settings. */
const mostBytes = 1024 ** 2;

function readDotenv(root: string): SetupProject["env"] {
  try {
    return parseEnv(readForeignFile(join(root, ".env"), { mostBytes }).toString());
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return {};
    throw new SetupError(`${root}/.env exists but cannot be read (${code ?? "unknown error"}).`);
  }
}

/** Those in COMPOSE_FILE, else those that compose would use: the first of its names, and the first override. Without ours. */
function findComposeFiles(root: string, env: SetupProject["env"]): readonly string[] {
  const named = namedFiles(env).map((file) => resolve(root, file));
  if (named.length > 0) return named.filter((file) => file !== join(root, ownComposeFile));
  const main = composeFileNames.find((name) => existsSync(join(root, name)));
  if (main === undefined) return [];
  const override = findOverride(root);
  return [main, ...(override === null || isWrittenByInit(join(root, override)) ? [] : [override])].map(
    (name) => join(root, name),
  );
}

/** The override in `root` that compose uses by itself, or null. */
export function findOverride(root: string): string | null {
  return composeOverrideNames.find((name) => existsSync(join(root, name))) ?? null;
}

/** Whether the file begins with a comment that says so. */
export function isWrittenByInit(path: string): boolean {
  try {
    return /^#[^\n]*`hotpush init`/.test(readForeignFile(path, { mostBytes, isCut: true }).toString());
  } catch {
    return false;
  }
}

/** Compose uses the directory of the first file as the project's: for its name, and for relative paths. */
function refuseOtherDirectory({ root, env, composeFiles: [first] }: SetupProject): void {
  if (!env.COMPOSE_FILE || first === undefined || real(dirname(first)) === real(root)) return;
  const file = relative(root, first);
  throw new SetupError(
    `COMPOSE_FILE in .env names ${file} first, and compose uses that file's directory as the project's; Hotpush deploys the checkout's own. Name a file of the checkout's root first, such as a compose.yaml with \`include: [${file}]\` and \`name:\` with the present name of the project (docker compose ls), and run this again.`,
  );
}

/** Git prints the path of the checkout without links. */
function real(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
