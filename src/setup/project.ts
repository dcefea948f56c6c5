import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { type GitHost, siteBehind } from "#config/git-hosts";
import { secretFault } from "#config/secret";
import { isProjectName, projectNetwork, reservedNames, serviceAlias } from "#config/server";
import { type Branch, branches, type Environment } from "#config/settings";
import { webhookUrl } from "#config/values";
import {
  type ComposeModel,
  compareVersions,
  composeFileNames,
  composeOverrideNames,
  composeVersion,
  isWrittenByInit,
  loadModel,
  namedFiles,
  namingFiles,
  neededCompose,
  ownHeading,
} from "#platform/compose";
import { parseEnvFile, rawValue } from "#platform/env-file";
import { type GitOptions, gitOutput, neverAsk, parseGitRemoteUrl, refusesOwner, runGit } from "#platform/git";
import { quote } from "#platform/ssh";
import { CommandError } from "#problems";
import { withSourcesReadOnly } from "#rollout/tracked-sources";
import {
  type PlannedFile,
  planFile,
  readIfThere,
  type Setting,
  self,
  type WantedFile,
  withoutOtherValues,
  withSettings,
} from "./planned-file.ts";
import type { Changes, LeftPort, ServiceChange } from "./served.ts";
import { asName, real } from "./server.ts";
import { ownRoot } from "./start.ts";
import type { GitRemote } from "./webhook-form.ts";

/** The file of ours in a checkout that joins the project's services to Caddy: compose reads this one without being told. */
export const ownOverride = "compose.override.yaml";
/** The same where compose would not, because the project has an override or a COMPOSE_FILE: `.env` names it. */
export const ownComposeFile = "compose.hotpush.yaml";

/** A project that is set up. */
export interface SetupProject {
  /** Root of the git checkout. */
  readonly root: string;
  readonly remoteUrl: string | null;
  /** null if there is no remote, or it is a path on this machine. */
  readonly remote: GitRemote | null;
  /** The present variables of `.env`. */
  readonly env: Environment;
  /** The project's own compose files, absolute, in order. */
  readonly composeFiles: readonly string[];
}

/**
 * Reads the project around `directory`.
 *
 * @throws CommandError if it is not a git checkout that this user may use, or compose would take another directory for it
 */
export async function findProject(directory: string): Promise<SetupProject> {
  const root = await findRoot(directory);
  const remoteUrl = await readRemoteUrl(root);
  const remote = remoteUrl === null ? null : parseRemoteUrl(remoteUrl);
  const dotenv = readIfThere(join(root, ".env")) ?? "";
  const env: Environment = parseEnvFile(dotenv);
  refuseVariables(dotenv);
  const composeFiles = findComposeFiles(root, env);
  refuseOtherDirectory(root, env, composeFiles);
  return { root, remoteUrl, remote, env, composeFiles };
}

async function findRoot(directory: string): Promise<string> {
  const ending = await runGit(directory, ["rev-parse", "--show-toplevel"], unattended(directory));
  if (ending.kind === "exited" && ending.code === 0 && ending.output.trim() !== "")
    return refuseLinkedCheckout(ending.output.trim());
  if (ending.kind === "not_found")
    throw new CommandError("git is not installed. Install it (Debian: apt-get install git).");
  if (refusesOwner(ending)) {
    throw new CommandError(
      `${directory} belongs to another user, so git refuses it. Run this as that user; or, if you trust them: git config --global --add safe.directory ${directory}`,
    );
  }
  throw new CommandError(
    `${directory} is not in a git checkout. Hotpush deploys a checkout: clone your project on this machine, go to its directory, and run this again.`,
  );
}

/**
 * A deployment moves branches and writes to the repository, which may be that of other checkouts too. Its settings and its deploy
 * key are read in `.git`, also in `run`, where a directory outside may be missing.
 *
 * @returns `root`
 */
async function refuseLinkedCheckout(root: string): Promise<string> {
  if (!lstatSync(join(root, ".git"), { throwIfNoEntry: false })?.isFile()) return root;
  const asked = [
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--show-superproject-working-tree",
  ];
  const [own, common, parent] = (await git(root, "rev-parse", ...asked))?.split("\n") ?? [];
  if (own && own === common && !parent)
    throw new CommandError(
      `The repository of ${root} is outside of it, in ${own}; Hotpush needs it in ${join(root, ".git")}. Move it there and run this again: cd ${quote(root)} && rm .git && mv ${quote(own)} .git`,
    );
  throw new CommandError(
    `${root} isn't a clone of its own: its .git is a file that leads to the repository, as in a linked worktree or a submodule. Run this in a clone: git clone "$(git remote get-url origin)" <directory>`,
  );
}

/** The URL of the remote `origin` in `directory`; null if there is none. */
export function readRemoteUrl(directory: string): Promise<string | null> {
  return git(directory, "remote", "get-url", "origin");
}

/**
 * Reads the URL of a remote: `git@host:owner/name.git`, `ssh://git@host:2222/owner/name`, `https://host/owner/name.git`.
 * An ssh alias that starts with a host's name (`github.com-shop:owner/name`, used for several deploy keys) counts as that
 * host.
 *
 * @returns null for a path on this machine, and for anything that is not the URL of a remote
 */
export function parseRemoteUrl(url: string): GitRemote | null {
  const { scheme, host, port, path } = parseGitRemoteUrl(url);
  const plain = path.replace(/^[~/]+|\/+$/g, "").replace(/\.git$/, "");
  if (host === null || plain === "" || /\s/.test(plain)) return null;
  const written = host.includes(":") ? `[${host}]` : host;
  const web = scheme.startsWith("http") ? `${scheme}://${written}:${port ?? ""}` : null;
  const site = web ?? `https://${siteBehind(written.toLowerCase())}`;
  if (!URL.canParse(site)) return null;
  const { hostname, origin } = new URL(site);
  return { hostname: siteBehind(hostname), path: plain, origin };
}

/**
 * The branch to deploy: `known` while the remote has it, else the one that the HEAD of `origin` names, or the only one of main and
 * master. If the remote does not answer, as to root in a user's checkout, it is `known`, or the one that was cloned.
 */
export async function readRemoteBranch(
  directory: string,
  known: Branch | null = null,
): Promise<Branch | null> {
  const refs = ["HEAD", ...branches.map((branch) => `refs/heads/${branch}`)];
  const answer = await git(directory, "ls-remote", "--symref", "--", "origin", ...refs);
  const present = branches.filter((branch) => new RegExp(`\trefs/heads/${branch}$`, "m").test(answer ?? ""));
  if (known !== null && (answer === null || present.includes(known))) return known;
  const [, name] = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(answer ?? "") ?? [];
  const [only, other] = present;
  if (only && !other && (known !== null || name === undefined)) return only;
  const cloned = name ?? (await git(directory, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"));
  const head = cloned?.replace(/^refs\/remotes\/origin\//, "");
  return branches.find((branch) => branch === head) ?? null;
}

/**
 * Those in COMPOSE_FILE, else those that compose would use by itself: the first of its names, and the first override. Without ours. A list
 * of such files alone is none that a person has chosen: if a push has renamed one, it counts for nothing.
 */
function findComposeFiles(root: string, env: Environment): readonly string[] {
  const all = namedFiles(env).map((file) => resolve(root, file));
  const named = all.filter((file) => file !== join(root, ownComposeFile));
  const isUsual = (file: string) => [...composeFileNames, ...composeOverrideNames].includes(basename(file));
  const isOld = named.length < all.length && named.every(isUsual) && !named.every((file) => existsSync(file));
  return all.length === 0 || isOld ? usualFiles(root) : named;
}

/** The files that compose uses by itself: the first of its names, and the first override. Without ours. */
export function usualFiles(root: string): readonly string[] {
  const isTheirs = (name: string) => existsSync(join(root, name)) && !isWrittenByInit(join(root, name));
  const firstOf = (names: readonly string[]) => names.find(isTheirs);
  const [main, override] = [composeFileNames, composeOverrideNames].map(firstOf);
  if (main === undefined) return [];
  return [main, ...(override === undefined ? [] : [override])].map((name) => join(root, name));
}

/** What `init` writes is the list itself. @throws CommandError if it has a variable, which compose would replace each time */
function refuseVariables(dotenv: string): void {
  const raw = rawValue(dotenv, "COMPOSE_FILE") ?? "";
  if (raw.startsWith("'") || !raw.includes("$")) return;
  throw new CommandError(
    `COMPOSE_FILE in .env is ${raw}. init adds a file to that list, so it can't have a variable in it: write the names of the files, and run this again.`,
  );
}

/** Git prints the path of the checkout without links. Compose uses the directory of the first file as the project's: for its name, and for relative paths. */
function refuseOtherDirectory(root: string, env: Environment, [first]: readonly string[]): void {
  if (!env.COMPOSE_FILE || first === undefined || real(dirname(first)) === real(root)) return;
  const file = relative(root, first);
  throw new CommandError(
    `COMPOSE_FILE in .env names ${file} first, and compose uses that file's directory as the project's; Hotpush deploys the checkout's own. Name a file of the checkout's root first, such as a compose.yaml with \`include: [${file}]\` and \`name:\` with the present name of the project (docker compose ls), and run this again.`,
  );
}

/**
 * Runs git in `directory` for at most 10 s, without any question to a person.
 *
 * @returns its standard output, trimmed; null unless it exits with code 0
 */
export function git(directory: string, ...args: readonly string[]): Promise<string | null> {
  return gitOutput(directory, args, unattended(directory));
}

function unattended(directory: string): GitOptions {
  const never = neverAsk(directory);
  const ssh = process.env.GIT_SSH_COMMAND || never.GIT_SSH_COMMAND;
  return { env: { ...process.env, ...never, GIT_SSH_COMMAND: ssh } };
}

const versionTimeoutMs = 20_000;

/**
 * Asks compose for a project, as it is without Hotpush.
 *
 * @throws CommandError if the project has no compose file, there is no compose, it is too old, or one of the services is a
 * Hotpush: two would both deploy every push; ProblemError `compose_invalid` with what compose says of the files
 */
export async function readModel(
  { root, composeFiles }: Pick<SetupProject, "root" | "composeFiles">,
  env: NodeJS.ProcessEnv,
): Promise<ComposeModel> {
  if (composeFiles.length === 0) {
    throw new CommandError(
      `There is no compose file in ${root}, and Hotpush sets up projects that run with docker compose. To deploy other projects, run Hotpush as a service of systemd: ${join(ownRoot, "examples/systemd/hotpush.service")} begins with the commands.`,
    );
  }
  const version = await composeVersion({ env }, versionTimeoutMs);
  if (version === null || compareVersions(version, neededCompose) < 0)
    throw new CommandError(
      `Docker Compose is ${version ?? "missing"} here; ${neededCompose} or newer is needed. Run this on the server; or install it: https://docs.docker.com/engine/install/`,
    );
  const target = { projectDirectory: root, files: composeFiles };
  const model = await withSourcesReadOnly(await loadModel({ env, target }), root, env);
  if (!Object.hasOwn(model.services, "hotpush")) return model;
  throw new CommandError(
    "Your compose file has a service called hotpush, so this project is set up by hand. To let init do it, remove that service and its proxy, if it has one, and run this again; to check the project as it is: hotpush doctor",
  );
}

/** What decides about the name of a project on the server. */
export interface NameOptions {
  /** `owner/name` of the remote, or the path of the checkout if there is none. */
  readonly path: string;
  /** The name that a person gave. */
  readonly given: string | null;
  /** The name that it had before it was removed. With that, it gets its history back. */
  readonly former: string | null;
  /** The name that this checkout has already. */
  readonly known: string | null;
  /** Where the other projects are, for a person, by name. */
  readonly others: ReadonlyMap<string, string>;
}

/**
 * Chooses the project's name: the repository's, or `owner-name` if another project has that.
 *
 * @throws CommandError if the name cannot be had
 */
export function chooseProjectName({ path, given, former, known, others }: NameOptions): string {
  if (given !== null && known !== null && given !== known)
    throw new CommandError(
      `This checkout is the project ${known} already. To rename it, remove it first: hotpush remove --project ${known}`,
    );
  const isFree = (name: string) => isProjectName(name) && !reservedNames.includes(name) && !others.has(name);
  if (given !== null && !isFree(given)) {
    const other = others.has(given) ? `the project in ${others.get(given)}` : "a name of the server's own";
    throw new CommandError(`${given} is ${other}. Choose another name: hotpush init --project <name>`);
  }
  const parts = path.split("/").filter(Boolean);
  const derived = [asName(parts.at(-1) ?? ""), asName(parts.slice(-2).join("-"))];
  const name = given ?? known ?? [former ?? "", ...derived].find(isFree);
  if (name !== undefined) return name;
  throw new CommandError(
    `No name for this project is left: ${derived.join(" and ")} cannot be used or are taken. Choose one: hotpush init --project <name>`,
  );
}

/** Reads an address that a person typed: https if there is no scheme. Null: not a URL, or more than a site and `/webhook`. */
export function parsePublicUrl(text: string): URL | null {
  const trimmed = text.trim();
  if (trimmed === "" || /\s/.test(trimmed)) return null;
  const url = webhookUrl(/^[a-z]+:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`);
  return url?.href === `${url?.origin}/webhook` ? url : null;
}

/** What is known and decided about a project's file on the server. */
export interface ProjectFileOptions {
  /** On the server. */
  readonly name: string;
  readonly project: Pick<SetupProject, "root">;
  readonly branch: Branch | null;
  /** The present variables of the file. */
  readonly known: Environment;
  readonly payloadUrl: URL;
  readonly host: GitHost | null;
  /** The choice of the command line, which replaces what is there. */
  readonly given: { readonly host?: GitHost };
  readonly gid: number;
}

/**
 * The file of a project on the server: its settings and its secret. Other lines in it stay. No REPOSITORY is written: the secret is the
 * project's own, and a repository that was moved would have all its pushes ignored.
 */
export function projectFile(options: ProjectFileOptions): WantedFile {
  const { name, project, branch, known, payloadUrl, host, given, gid } = options;
  const setting = (key: string, value: string | null, isOpen: boolean): readonly Setting[] =>
    value === null ? [] : [{ name: key, value, isOpen }];
  const settings = [
    ...setting("WEBHOOK_SECRET", known.WEBHOOK_SECRET_FILE ? null : goodSecret(known, host), false),
    ...setting("WEBHOOK_SECRET_FILE", known.WEBHOOK_SECRET_FILE || null, true),
    ...setting("REPO_PATH", project.root, false),
    ...setting("BRANCH", branch, branch === known.BRANCH),
    ...setting("WEBHOOK_URL", payloadUrl.href, payloadUrl.href === webhookUrl(known.WEBHOOK_URL ?? "")?.href),
    ...setting("HOTPUSH_GIT_HOST", host, given.host === undefined),
  ];
  return {
    name: `projects/${name}.env`,
    mode: 0o640,
    owner: { ...self(), gid },
    purpose: "the project, and its secret",
    make: (before) => withSettings(before ?? "", settings),
    shown: (text) => withoutOtherValues(text, settings),
  };
}

/** The present secret if it is valid, else a new one. */
function goodSecret({ WEBHOOK_SECRET: known }: Environment, host: GitHost | null): string {
  if (known !== undefined && secretFault("WEBHOOK_SECRET", known) === null) return known;
  return newSecret(host === "gitlab");
}

/** 32 random bytes in hex; for GitLab in the form of Standard Webhooks, as it requires. */
export function newSecret(isGitLab: boolean): string {
  const bytes = randomBytes(32);
  return isGitLab ? `whsec_${bytes.toString("base64")}` : bytes.toString("hex");
}

/** The files in a checkout that `init` wrote for compose: one, or two after it had to choose the other place. */
export function ownFilesIn(root: string): readonly string[] {
  return [ownOverride, ownComposeFile].map((name) => join(root, name)).filter(isWrittenByInit);
}

/** Why compose does not read a file of ours by itself, so that `.env` must name it; null: it does. */
function obstacleToOverride({ root, env }: SetupProject): string | null {
  if (env.COMPOSE_FILE) return "it sets COMPOSE_FILE";
  const present = composeOverrideNames.filter((name) => existsSync(join(root, name)));
  const theirs = present.find((name) => name !== ownOverride || !isWrittenByInit(join(root, name)));
  return theirs === undefined ? null : `compose would not read a second override beside ${theirs}`;
}

/**
 * The files that a checkout needs: deploy.sh, ours for compose, and what makes compose find it and git ignore it.
 *
 * @param composeName a name for the compose project; null: the one that it has
 * @throws CommandError if one that Hotpush would write to is in the repository
 */
export async function planCheckoutFiles(
  project: SetupProject,
  overrideText: string,
  composeName: string | null = null,
): Promise<readonly PlannedFile[]> {
  const { root, composeFiles, env } = project;
  const obstacle = obstacleToOverride(project);
  const own = obstacle === null ? ownOverride : ownComposeFile;
  // Absolute paths, so that they are the same from any working directory.
  const list = namingFiles([...composeFiles, join(root, own)], env);
  const settings = [
    ...(obstacle === null ? [] : [{ name: "COMPOSE_FILE", value: list, isOpen: false }]),
    ...(composeName === null ? [] : [{ name: "COMPOSE_PROJECT_NAME", value: composeName, isOpen: false }]),
  ];
  const names = settings.length === 0 ? [own] : [own, ".env"];
  const reason = obstacle ?? "another checkout's directory has the same name, unless you rename this one";
  for (const name of names) await refuseTracked(root, name, reason);
  const ignored = names.map((name) => `/${name}\n`).join("");
  const rows = [
    [
      "deploy.sh",
      "pulls, builds, replaces, checks; yours to change",
      (before) => before ?? readFileSync(join(ownRoot, "examples/deploy.sh"), "utf8"),
    ],
    [own, "your services as Caddy reaches them", () => overrideText],
    [
      ".env",
      `adds ${settings.map(({ name }) => name).join(" and ")}`,
      (before) => withSettings(before ?? "", settings),
    ],
    // Because .gitignore belongs to the repository.
    [
      ".git/info/exclude",
      `${names.join(" and ")}: this machine's alone`,
      (before) => (before?.includes(ignored) ? before : `${before?.trimEnd() ?? ""}\n${ignored}`.trimStart()),
    ],
  ] satisfies readonly (readonly [string, string, WantedFile["make"]])[];
  const shown = (text: string) => withoutOtherValues(text, settings);
  const wanted = rows.filter(([name]) => name !== ".env" || settings.length > 0);
  return wanted.map(([name, purpose, make]) => {
    const mode = name === "deploy.sh" ? 0o755 : null;
    return planFile(root, { name, mode, purpose, make, ...(name === ".env" && { shown }) });
  });
}

async function refuseTracked(root: string, name: string, reason: string): Promise<void> {
  if (!(await git(root, "ls-files", "--", name))) return;
  throw new CommandError(
    `${name} is in the repository, so each deployment would take away what Hotpush adds to it. It does so because ${reason}. Where you commit: git rm --cached ${name}, commit and push. Then here: cd ${root} && cp ${name} ${name}.own && git pull && mv ${name}.own ${name}. Then run this again.`,
  );
}

const header = `${ownHeading}; running that again keeps it up to date. Your compose file stays as it is.
# Caddy reaches the services below on a network that only it and they join.`;

/** The text of our compose file in a checkout: the changes, and the network that the project shares with Caddy. */
export function overrideText(project: string, all: Changes): string {
  const blocks = Object.entries(all).map(([name, change]) => serviceBlock(project, name, change));
  if (blocks.length === 0) return `${header}\nservices: {}\n`;
  const networks = `networks:\n  ${projectNetwork(project)}:\n    external: true\n`;
  return `${header}\nservices:\n${[...blocks, networks].join("\n")}`;
}

function serviceBlock(project: string, name: string, change: ServiceChange): string {
  const { networks, kept, droppedName } = change;
  // Other services may know it by the name that it loses.
  const aliases = droppedName === null ? [] : [`        aliases: [${JSON.stringify(droppedName)}]`];
  const lines = [
    // Quoted, because YAML could read it as a number or a keyword.
    `  ${JSON.stringify(name)}:`,
    ...portLines(kept),
    "    networks:",
    ...networks.flatMap((network) => [`      ${network}:`, ...aliases]),
    `      ${projectNetwork(project)}:`,
    `        aliases: [${serviceAlias(name, project)}]`,
    ...(droppedName !== null ? ["    container_name: !reset null # Two containers cannot share it."] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function portLines(kept: readonly LeftPort[]): readonly string[] {
  const ports = kept.flatMap(({ endpoint: { port, protocol, published } }) =>
    published.map(({ address, port: outside }) => {
      const parts = address === "" ? [outside].filter(Boolean) : [address, outside];
      return `      - "${[...parts, port].join(":")}/${protocol}"`;
    }),
  );
  if (ports.length === 0) return ["    ports: !reset [] # Caddy takes the requests."];
  return ["    ports: !override # Caddy takes the requests of the others.", ...ports];
}
