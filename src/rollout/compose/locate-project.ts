import { mkdir, stat, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { ComposeTarget } from "../../platform/compose/commands.ts";
import type { Container, ContainerMount } from "../../platform/docker/container.ts";
import { type Engine, filteredBy, getJson } from "../../platform/docker/engine.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";
import { ProblemError } from "../../problems.ts";

/**
 * Gives the compose project with its path on the host. In a container, the repository may be mounted at another path.
 * The engine resolves bind mounts on the host, so compose needs the host's path.
 *
 * @throws ProblemError `repository_not_mounted` if that path cannot be made to work in this container, with the line
 * to change
 */
export async function locateProject(engine: Engine, target: ComposeTarget): Promise<ComposeTarget> {
  const directory = resolve(target.projectDirectory);
  const own = await findOwnContainer(engine);
  if (own === null) return { ...target, projectDirectory: directory };
  const located = locateIn(own, target);
  if (located.projectDirectory !== directory) await standIn(directory, located.projectDirectory);
  return located;
}

/** A path on the host, and the path in the container where it is mounted. */
type MountedPath = Pick<ContainerMount, "source" | "target">;

type OwnPaths = Pick<Container, "labels"> & { readonly mounts: readonly MountedPath[] };

/**
 * The same, computed from the container's mounts and labels alone.
 *
 * @throws ProblemError `repository_not_mounted` if no mount holds the project
 */
export function locateIn(own: OwnPaths, target: ComposeTarget): ComposeTarget {
  const directoryHere = resolve(target.projectDirectory);
  const projectDirectory = hostPathOf(own.mounts, directoryHere);
  if (projectDirectory === null) throw notMounted(directoryHere);
  return { ...target, projectDirectory, directoryHere, ...projectOf(own, target, projectDirectory) };
}

/** The path of `directory` on the host, which identifies a project. Without a mount it is `directory` itself. */
export async function hostDirectoryOf(engine: Engine, directory: string): Promise<string> {
  const own = await findOwnContainer(engine);
  return (own && hostPathOf(own.mounts, directory)) ?? directory;
}

/** The host's path of `path`, by the innermost mount that contains it; null if it is not mounted. */
export function hostPathOf(mounts: readonly MountedPath[], path: string): string | null {
  const holding = mounts.filter(({ target }) => path === target || path.startsWith(`${target}/`));
  const [innermost] = holding.toSorted((a, b) => b.target.length - a.target.length);
  return innermost ? join(innermost.source, relative(innermost.target, path)) : null;
}

/**
 * If the project that Hotpush deploys has started it, the name and the files of that start are used: `docker compose
 * -p shop -f prod.yaml up` need not be repeated.
 */
export function projectOf(
  { labels }: Pick<Container, "labels">,
  { files }: ComposeTarget,
  hostDirectory: string,
): Partial<ComposeTarget> {
  const label = (name: string) => labels[`com.docker.compose.project${name}`];
  const name = label("");
  if (name === undefined || label(".working_dir") !== hostDirectory) return {};
  const used = (label(".config_files") ?? "").split(",").filter(Boolean);
  const areUsual = used.every((file) => /\/(?:docker-)?compose(?:\.override)?\.ya?ml$/.test(file));
  return { projectName: name, files: files.length > 0 || areUsual ? files : used };
}

/** Links the host's path to the repository in this container, so that one path works for both. */
async function standIn(directory: string, hostDirectory: string): Promise<void> {
  try {
    await mkdir(dirname(hostDirectory), { recursive: true });
    await symlink(directory, hostDirectory);
  } catch (error) {
    if (await areSame(directory, hostDirectory)) return;
    throw new ProblemError(
      {
        code: "repository_not_mounted",
        detail: `The repository is ${hostDirectory} on the host, but ${directory} in this container, and no link to it can be made here. In the compose file, under Hotpush's volumes, write "${hostDirectory}:${hostDirectory}", and set REPO_PATH to ${hostDirectory}.`,
      },
      error,
    );
  }
}

/** Also true if the repository is mounted at both paths. */
async function areSame(directory: string, other: string): Promise<boolean> {
  const [one, two] = await Promise.all([stat(directory), stat(other).catch(() => null)]);
  return one.dev === two?.dev && one.ino === two.ino;
}

function notMounted(directory: string): ProblemError {
  return new ProblemError({
    code: "repository_not_mounted",
    detail: `${directory} is not mounted from the host, so the engine cannot see it. In the compose file, under Hotpush's volumes, mount the repository at the path that it has on the host, such as "/srv/shop:/srv/shop", and set REPO_PATH to that path.`,
  });
}

/**
 * Refuses to work outside of the container in which the project's own Hotpush runs, and keeps the lock and the good
 * versions. From outside, two roll-outs could run at once, and prune would remove images that a roll back needs.
 *
 * @param projectDirectory as the host sees it
 * @param env `STATE_PATH` in it confirms that the state is the right one; the image sets it
 * @throws ProblemError `state_unusable` with the container to run the command in
 */
export async function refuseOtherState(
  engine: Engine,
  projectDirectory: string,
  { STATE_PATH }: NodeJS.ProcessEnv,
): Promise<void> {
  if (STATE_PATH) return;
  const label = [
    "org.opencontainers.image.title=Hotpush",
    `com.docker.compose.project.working_dir=${projectDirectory}`,
  ];
  const path = `/containers/json?${filteredBy({ label, status: ["running"] })}`;
  const [container] = await getJson<readonly { readonly Names: readonly string[] }[]>(engine, path);
  if (!container) return;
  const name = container.Names[0]?.replace(/^\//, "") ?? "";
  const detail = `Hotpush runs in the container ${name}, which holds the lock of this project's roll-outs and the list of its good versions. Run the command there: docker exec ${name} hotpush ... Nothing was changed. (With STATE_PATH set, it runs here, on the state in that directory.)`;
  throw new ProblemError({ code: "state_unusable", detail });
}
