import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { type Branch, branches } from "../config.ts";
import { composeFileNames, namedFiles } from "../platform/compose/file-names.ts";
import { git } from "./git.ts";
import { type GitRemote, parseRemoteUrl, readRemoteBranch, readRemoteUrl } from "./git-checkout.ts";
import { type GitHost, gitHostOf } from "./git-host.ts";
import { SetupError } from "./setup-error.ts";

/** The file with Hotpush's own part of a compose project. */
export const ownComposeFile = "compose.hotpush.yaml";

/** Variables that a person has for Hotpush's container beside its settings; not there by itself. */
export const ownEnvFile = "hotpush.env";

/** What there is to be set up. */
export interface Project {
  /** Root of the git checkout. */
  readonly root: string;
  readonly remoteUrl: string | null;
  /** null where there is no remote, or it is a path on this machine. */
  readonly remote: GitRemote | null;
  /** null where the remote's name does not tell. */
  readonly host: GitHost | null;
  /** The branch to deploy: what `.env` says, else the remote's HEAD; null if that is neither main nor master. */
  readonly branch: Branch | null;
  /** What `.env` says now. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The project's own compose files, absolute, in order; none where it has none. */
  readonly composeFiles: readonly string[];
}

/**
 * Finds out what the project around `directory` is.
 *
 * @throws SetupError where it is no git checkout that this user may use
 */
export async function findProject(directory: string): Promise<Project> {
  const root = await findRoot(directory);
  const remoteUrl = await readRemoteUrl(root);
  const remote = remoteUrl === null ? null : parseRemoteUrl(remoteUrl);
  const env = readDotenv(root);
  const host = remote && gitHostOf(remote);
  const branch = branches.find((one) => one === env.BRANCH) ?? (await readRemoteBranch(root));
  return { root, remoteUrl, remote, host, branch, env, composeFiles: findComposeFiles(root, env) };
}

async function findRoot(directory: string): Promise<string> {
  try {
    const root = await git(directory, "rev-parse", "--show-toplevel");
    if (root !== "") return root;
  } catch (error) {
    const { code, stderr = "" } = error as { readonly code?: unknown; readonly stderr?: string };
    if (code === "ENOENT")
      throw new SetupError("git is not installed. Install it (Debian: apt-get install git).");
    if (stderr.includes("dubious ownership")) {
      throw new SetupError(
        `${directory} belongs to another user, so git refuses it. Run this as that user; or, if you trust them: git config --global --add safe.directory ${directory}`,
      );
    }
  }
  throw new SetupError(
    `${directory} is in no git checkout. Hotpush deploys one: clone your project on this machine, go to its directory, and run this again.`,
  );
}

function readDotenv(root: string): Project["env"] {
  try {
    return parseEnv(readFileSync(join(root, ".env"), "utf8"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return {};
    throw new SetupError(`${root}/.env is there but cannot be read (${code ?? "unknown error"}).`);
  }
}

/** Those that COMPOSE_FILE names, without ours; else what compose would take: the first of its names, and its override. */
function findComposeFiles(root: string, env: Project["env"]): readonly string[] {
  const named = namedFiles(env).map((file) => resolve(root, file));
  if (named.length > 0) return named.filter((file) => file !== join(root, ownComposeFile));
  const main = composeFileNames.find((name) => existsSync(join(root, name)));
  if (main === undefined) return [];
  const stem = main.replace(/\.ya?ml$/, "");
  const override = [`${stem}.override.yml`, `${stem}.override.yaml`].find((name) =>
    existsSync(join(root, name)),
  );
  return [main, ...(override === undefined ? [] : [override])].map((name) => join(root, name));
}
