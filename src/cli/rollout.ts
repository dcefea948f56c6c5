import { join, resolve } from "node:path";
import type { Command } from "commander";
import { formatSize } from "#config/values";
import { connectEngine } from "#platform/docker/engine";
import { ownUid } from "#platform/files";
import { runAs, runInPlace } from "#platform/run-command";
import { ProblemError } from "#problems";
import { findNewImages } from "#rollout/images";
import { findStatePath, locateProject, refuseOtherState } from "#rollout/locate-project";
import { keptByDefault } from "#rollout/prune";
import { reportJson, reportText, reportToService } from "#rollout/report";
import { pruneImages, rollOut } from "#rollout/rollout";
import { lockRollout, rolloutState } from "#rollout/state";
import { type CommandContext, newCommand, numberParser, print, untilLeft } from "./command.ts";

export const commands = { rollout: makeRolloutCommand, prune: makePruneCommand };

const lockWaitS = 600;

/** How the output looks, and the server if it is not in its usual place. */
const passedOn = ["TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "SERVER_PATH"];

interface ProjectOptions {
  readonly directory?: string;
}

const directory = [
  "--directory <path>",
  "the compose project (default: REPO_PATH, else the working directory)",
] as const;

interface RolloutOptions extends ProjectOptions {
  readonly commit?: string;
  readonly build: boolean;
  readonly pull?: boolean;
  readonly prune?: boolean;
  readonly back?: string | true;
  readonly listNewImages?: boolean;
  readonly json?: boolean;
}

/** `hotpush rollout`: reports on standard output. Its exit code is 0 if the new version serves, 1 if the old one does. */
function makeRolloutCommand({ env, finish }: CommandContext): Command {
  const description =
    "Replace the containers of a compose project without dropping a request. A stack file with `x-hotpush: { engine: swarm }` is rolled out on a Docker Swarm, always as a whole.\n\nWithout services: all whose image, configuration or mounted files changed, in the order of their dependencies.";
  return newCommand("rollout", description, [
    "hotpush rollout          everything that changed",
    "hotpush rollout app      only the service app",
    "hotpush rollout --back   the previous good version, without the service",
  ])
    .argument("[services...]")
    .option(...directory)
    .option(
      "--commit <commit>",
      "the commit to name images after (default: what is checked out; outside of git DEPLOY_COMMIT)",
    )
    .option("--no-build", "use the images that exist")
    .option("--pull", "pull the images that are not built here")
    .option("--prune", "remove old images as well, as hotpush prune, while the new version is watched")
    .option("--back [commit]", "go back to the good version of a commit, or to the previous one")
    .option("--list-new-images", "only list the images of which their registry has another one now")
    .option("--json", "events, one JSON object a line")
    .action(async (services: string[], options: RolloutOptions, command: Command) => {
      if (services.length > 0 && options.back)
        command.error("error: --back rolls back all services: name none.");
      const run = options.listNewImages ? listNewImages : runRollout;
      finish((await runAsOwner(options, env)) ?? (await run(options, env, services)));
    });
}

function runRollout(
  options: RolloutOptions,
  env: NodeJS.ProcessEnv,
  names: readonly string[],
): Promise<number> {
  return untilLeft(async (signal) => {
    let report = (options.json ? reportJson : reportText)((text) => process.stdout.write(text));
    const { back, pull = false, prune = false } = options;
    try {
      const located = await locateNamedProject(options, env);
      report = reportToService(report, located.statePath, env.DEPLOY_ID);
      await rollOut({
        ...located,
        env,
        names,
        report,
        signal,
        commit: options.commit,
        lockWaitS,
        withBuild: options.build && !back,
        withPull: pull && !back,
        withPrune: prune && !back,
        back: back ? { commit: back === true ? undefined : back } : null,
      });
      return 0;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      const { code, detail, evidence = [] } = error.problem;
      report({ event: "failed", code, detail, evidence });
      return 1;
    }
  });
}

/** Prints each as `name@digest`. */
async function listNewImages(options: ProjectOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { engine, target } = await locateNamedProject(options, env);
  print(...(await findNewImages({ engine, target, env })));
  return 0;
}

interface PruneOptions extends ProjectOptions {
  readonly keep: number;
  readonly json?: boolean;
}

/** `hotpush prune`: prints on standard output what was removed. */
function makePruneCommand({ env, finish }: CommandContext): Command {
  const versionCount = numberParser(0, 999, "Not a number of versions.");
  const description =
    "Remove old images of this compose project or stack: all but those of containers, of the live version and of the good versions before it. Other projects are not touched.";
  return newCommand("prune", description, [
    "hotpush prune            keep the live version and the 2 good ones before it",
    "hotpush prune --keep 5   for a project that is often rolled back",
  ])
    .option("--keep <n>", "good versions to keep before the live one", versionCount, keptByDefault)
    .option(...directory)
    .option("--json", "the result as one JSON object")
    .action(async (options: PruneOptions) =>
      finish((await runAsOwner(options, env)) ?? (await runPrune(options, env))),
    );
}

/** Holds the lock of roll-outs, because an image that a roll-out is about to start has no container yet. */
async function runPrune({ keep, json, ...named }: PruneOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { engine, target, lockPath, versionsPath } = await locateNamedProject(named, env);
  const lock = await lockRollout(lockPath, lockWaitS);
  try {
    const options = { env, lockDescriptor: lock.descriptor, target };
    const pruned = await pruneImages({ ...options, engine, versionsPath, keep });
    if (json) print(JSON.stringify(pruned));
    else {
      print(...pruned.removed.map((name) => `  removed ${name}`));
      print(`Freed ${formatSize(pruned.cacheBytes)} of build cache.`);
    }
    return 0;
  } finally {
    await lock.release();
  }
}

/**
 * If root calls a command in a directory of another user on a server, it runs again as that user: the lock, the good versions,
 * the live files and perhaps docker's plugins are theirs, and they could put a link or a program in the place of any of them.
 * Nothing in the directory is read before: only who owns it, and root's files of the server, which say what project it is.
 *
 * @returns its exit code; null: the command is to run in this process
 */
async function runAsOwner(options: ProjectOptions, env: NodeJS.ProcessEnv): Promise<number | null> {
  // Who names a state directory, as a service does for its scripts, has decided.
  if (ownUid() !== 0 || namesState(env)) return null;
  // A roll-out by a script needs neither.
  const { childEnvironment, ownerOf } = await import("#runner/script");
  const { findProjectAround, findServer } = await import("#setup/server");
  const { readProjectFile } = await import("#config/project-files");
  const server = findServer(env);
  const repoPath = resolve(options.directory ?? env.REPO_PATH ?? ".");
  const user = server && ownerOf(repoPath, env.DOCKER_HOST);
  if (!user) return null;
  const project = findProjectAround(server, repoPath);
  const scriptStatePath = project && join(server.state.projects, project.name);
  // Their own: `repoPath` may be a link of theirs to the checkout of another.
  const isTheirs = project && ownerOf(project.env.REPO_PATH ?? "", env.DOCKER_HOST)?.uid === user.uid;
  const read = isTheirs ? readProjectFile(server.files, project.name).project : null;
  const own = { repoPath, user, scriptStatePath, scriptSecrets: read?.scriptSecrets ?? {} };
  const known = childEnvironment({ env, deployEnv: passedOn, ...own });
  const [program = "", ...prefix] = runAs(user);
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return (await runInPlace([program, ...prefix, ...again], known)) ?? 1;
}

/** `run` of a server has a STATE_PATH in its container that is not one of roll-outs. */
function namesState({ STATE_PATH, SERVER_STATE_PATH }: NodeJS.ProcessEnv): boolean {
  return Boolean(STATE_PATH && !SERVER_STATE_PATH);
}

/** @throws ProblemError as `locateProject`, `refuseOtherState` and `findStatePath`; `state_unusable` for root in a state of others */
async function locateNamedProject({ directory }: ProjectOptions, env: NodeJS.ProcessEnv) {
  const engine = connectEngine(env.DOCKER_HOST);
  const projectDirectory = directory ?? env.REPO_PATH ?? process.cwd();
  const target = await locateProject(engine, { projectDirectory, files: [] });
  await refuseOtherState(engine, target.projectDirectory, env);
  const statePath = await findStatePath(engine, target, env);
  const owner = namesState(env) ? null : (await import("#runner/script")).ownerOf(statePath, env.DOCKER_HOST);
  if (owner === null) return { engine, target, ...rolloutState(statePath, target.projectDirectory) };
  // Root finds the state of a server by its containers, but not its files.
  const detail = `The lock and the good versions of this project are in ${statePath}, which belongs to uid ${owner.uid}, so root does not use them. Run the command as that user; or name the directory of the server in SERVER_PATH. Nothing was changed.`;
  throw new ProblemError({ code: "state_unusable", detail });
}
