import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { Deployment } from "../deployments/deployment.ts";
import { findDeployment } from "../deployments/record.ts";
import { recordRollback } from "../deployments/roll-back.ts";
import { openStore, type Store } from "../deployments/store.ts";
import { ProblemError } from "../problems.ts";
import { rolloutState, stateDirectoryOf } from "../rollout/state.ts";
import { previousVersion, readVersions } from "../rollout/versions.ts";
import { flock } from "../runner/flock.ts";
import { newCommand, refuse, type Surroundings } from "./command.ts";
import { followDeployment } from "./follow-deployment.ts";

interface Options {
  readonly directory?: string;
  readonly detach?: boolean;
}

/** `hotpush rollback`: has the service roll back, and shows what it prints. Its exit code is 0 where the earlier version serves. */
export function makeRollbackCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Brings an earlier good version back by a roll-out without a build: the previous one, or that of a deployment (by its number) or of a commit (by its first digits). The service runs it as a deployment of its own, when the one that runs has ended, and what was pushed meanwhile stays away until the next push.";
  return newCommand("rollback", summary, [
    "hotpush rollback           the previous good version",
    "hotpush rollback 7         that of deployment 7",
    "hotpush rollback 3f2c1a9   that of this commit",
  ])
    .argument("[version]", "a deployment's number, or a commit", version)
    .option("--directory <path>", "the compose project (default: REPO_PATH, else the working directory)")
    .option("--detach", "do not wait for its end; so it is always within a deploy.sh, whose end it waits for")
    .action(async (wanted: string | undefined, options: Options) =>
      finish(await runRollback(wanted, options, env)),
    );
}

function version(text: string): string {
  if (/^[0-9a-f]{1,64}$/i.test(text)) return text;
  throw new InvalidArgumentError("One deployment's number, or one commit.");
}

async function runRollback(
  wanted: string | undefined,
  options: Options,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { directory = env.REPO_PATH ?? process.cwd(), detach } = options;
  const statePath = stateDirectoryOf(env);
  if (!(await isServiceRunning(statePath))) {
    return refuse(
      `No Hotpush runs deployments in ${statePath}. Start it, or set STATE_PATH to where its state is; without it: hotpush rollout --back`,
    );
  }
  const { versionsPath } = rolloutState(statePath, directory);
  return withStore(statePath, async (store) => {
    const asked = await askFor(store, versionsPath, wanted);
    if (typeof asked === "string") return refuse(asked);
    process.stdout.write(`Deployment ${asked.id} goes back to ${asked.commit}.\n`);
    return detach || env.DEPLOY_ID !== undefined ? 0 : await followDeployment(store, statePath, asked.id);
  });
}

/** The one that runs deployments holds this lock. */
async function isServiceRunning(statePath: string): Promise<boolean> {
  try {
    const fd = openSync(join(statePath, "runner.lock"), "r");
    try {
      return !(await flock(fd, { isWaiting: false }));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

async function withStore(statePath: string, work: (store: Store) => Promise<number>): Promise<number> {
  try {
    const store = openStore(statePath);
    try {
      return await work(store);
    } finally {
      store.close();
    }
  } catch (error) {
    if (error instanceof ProblemError) return refuse(error.problem.detail);
    throw error;
  }
}

/** @returns the deployment that was recorded, or why there is none */
async function askFor(
  store: Store,
  versionsPath: string,
  wanted: string | undefined,
): Promise<Deployment | string> {
  const commit = wanted === undefined ? undefined : commitOf(store, wanted);
  const versions = await readVersions(versionsPath);
  const version = previousVersion(versions, commit);
  if (!version) {
    const known = versions.map((one) => one.commit.slice(0, 12)).join(", ") || "none";
    return `There is no good version ${commit ? `of ${commit}` : "before the present one"} to go back to. Good versions, oldest first: ${known}. Nothing was changed.`;
  }
  return (
    recordRollback(store, version.commit) ?? "Nothing was deployed yet, so there is nothing to go back from."
  );
}

/** Short digits are a deployment's number where there is one of that number, else the first ones of a commit. */
function commitOf(store: Store, wanted: string): string {
  const deployment = /^\d{1,9}$/.test(wanted) ? findDeployment(store, Number(wanted)) : null;
  return deployment?.commit ?? wanted.toLowerCase();
}
