import { cpSync, existsSync, lchownSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { MachineState } from "../../config/machine-part.ts";
import { callService } from "../../control/client.ts";
import type { ImportedJson } from "../../control/import.ts";
import type { Container } from "../../platform/docker/container.ts";
import { hasSucceeded, runCommand } from "../../platform/run-command.ts";
import { CommandError } from "../../problems.ts";
import { switchLiveFiles } from "../../rollout/proxy/live-file.ts";

export interface CarryOptions {
  readonly state: MachineState;
  readonly project: string;
  /** The checkout. */
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
}

const copyTimeoutMs = 300_000;

/**
 * Copies the certificates and the ACME account of a Caddy to that of the machine part. Files that are there stay.
 *
 * @throws CommandError if they cannot be copied
 */
export async function carryCertificates(caddy: Container, options: CarryOptions): Promise<void> {
  await withCopy(caddy, "/data", options, (copy) =>
    cpSync(copy, options.state.caddy, { recursive: true, force: false, preserveTimestamps: true }),
  );
}

/**
 * Makes the history, the logs and the good versions of a Hotpush that has stopped those of a project of the machine part.
 *
 * @returns how many deployments were added
 * @throws CommandError if they cannot be copied, CommandError if `run` refuses them
 */
export async function carryHistory(hotpush: Container, options: CarryOptions): Promise<number> {
  const { state, project } = options;
  return await withCopy(hotpush, "/var/lib/hotpush", options, async (copy) => {
    carryVersions(copy, options);
    if (!existsSync(join(copy, "hotpush.db"))) return 0;
    const body = { project, directory: copy };
    return (await callService<ImportedJson>(state.run, "POST", "/import", body)).added;
  });
}

function carryVersions(copy: string, { state, project, root }: CarryOptions): void {
  const [from, own] = [join(copy, "rollout"), join(state.projects, project)];
  const to = join(own, "rollout");
  if (!existsSync(from)) return;
  mkdirSync(own, { recursive: true, mode: 0o700 });
  mkdirSync(to, { recursive: true });
  const versions = readdirSync(from).filter((name) => name.endsWith(".json"));
  for (const name of versions) cpSync(join(from, name), join(to, name), { force: false });
  giveToOwner([own, to, ...versions.map((name) => join(to, name))], root);
}

/**
 * Writes the live files of a service whose containers serve now, for the Caddy of the machine part.
 *
 * @throws ProblemError `live_file_not_writable`
 */
export async function writeLiveFiles(
  { state, project, root }: CarryOptions,
  service: string,
  containers: readonly Container[],
): Promise<void> {
  const directory = join(state.live, project);
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  const names = containers.map(({ name }) => name);
  await switchLiveFiles(directory, service, names);
  giveToOwner([directory, ...readdirSync(directory).map((name) => join(directory, name))], root);
}

/** Scripts run as the owner of the checkout, and roll-outs write there. */
function giveToOwner(paths: readonly string[], root: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(root);
  for (const path of paths) lchownSync(path, uid, gid);
}

/** The directory is in that of `run`, at the path that `run` knows. */
async function withCopy<Result>(
  container: Container,
  path: string,
  { state, project, env }: CarryOptions,
  use: (copy: string) => Result | Promise<Result>,
): Promise<Result> {
  const copy = join(state.run, `moving-${project}`);
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { mode: 0o700 });
  try {
    await copyMount(container, path, copy, env);
    return await use(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/**
 * Through a container that has only this mount and never starts: Docker does not copy from a stopped container with a
 * mount below a link, and the old one has the Docker socket at /var/run.
 */
async function copyMount(
  { name, image, mounts }: Container,
  path: string,
  directory: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const mount = mounts.find(({ target }) => target === path);
  if (mount === undefined) return;
  const source = mount.type === "volume" ? mount.name : mount.source;
  const what = `${path} of ${name}`;
  const mounted = `type=${mount.type},source=${source},target=/copied,readonly`;
  const id = await docker(["create", "--network", "none", "--mount", mounted, image], what, env);
  try {
    await docker(["cp", "--quiet", `${id}:/copied/.`, directory], what, env);
  } finally {
    await docker(["rm", "--volumes", id], what, env);
  }
}

async function docker(args: readonly string[], what: string, env: NodeJS.ProcessEnv): Promise<string> {
  const ending = await runCommand({ argv: ["docker", ...args], env, timeoutMs: copyTimeoutMs });
  if (hasSucceeded(ending)) return ending.output.trim();
  throw new CommandError(`${what} could not be copied: ${ending.lastLines.at(-1) ?? ending.kind}`);
}
