import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Deployment } from "../deployments/deployment.ts";
import { findDeployment } from "../deployments/record.ts";
import { recordRollback } from "../deployments/roll-back.ts";
import { openStore, type Store } from "../deployments/store.ts";
import { ProblemError } from "../problems.ts";
import { rolloutState, stateDirectoryOf } from "../rollout/state.ts";
import { previousVersion, readVersions } from "../rollout/versions.ts";
import { flock } from "../runner/flock.ts";
import { followDeployment } from "./follow-deployment.ts";

const usage = `Usage: hotpush rollback [options] [deployment | commit]

Brings an earlier good version back by a roll-out without a build: the previous one, or that of a deployment
(by its number) or of a commit (by its first digits). The service runs it as a deployment of its own, when the
one that runs has ended, and what was pushed meanwhile stays away until the next push.

  hotpush rollback           the previous good version
  hotpush rollback 7         that of deployment 7
  hotpush rollback 3f2c1a9   that of this commit

  --directory <path>   the compose project (default: REPO_PATH, else the working directory)
  --detach             do not wait for its end; so it is always within a deploy.sh, whose end it waits for
  --help
`;

/**
 * `hotpush rollback`: has the service roll back, and shows what it prints.
 *
 * @returns the exit code: 0 where the earlier version serves (or is to, with --detach), 1 where not, 2 for a wrong
 *   command line
 */
export async function runRollbackCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    process.stderr.write(`${options}\n\n${usage}`);
    return 2;
  }
  if (options.values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const statePath = stateDirectoryOf(env);
  if (!(await isServiceRunning(statePath))) {
    return refuse(
      `No Hotpush runs deployments in ${statePath}. Start it, or set STATE_PATH to where its state is; without it: hotpush rollout --back`,
    );
  }
  const { directory = env.REPO_PATH ?? process.cwd(), detach } = options.values;
  const { versionsPath } = rolloutState(statePath, directory);
  return withStore(statePath, async (store) => {
    const asked = await askFor(store, versionsPath, options.positionals[0]);
    if (typeof asked === "string") return refuse(asked);
    process.stdout.write(`Deployment ${asked.id} goes back to ${asked.commit}.\n`);
    return detach || env.DEPLOY_ID !== undefined ? 0 : await followDeployment(store, statePath, asked.id);
  });
}

function readOptions(args: readonly string[]) {
  try {
    const parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { directory: { type: "string" }, detach: { type: "boolean" }, help: { type: "boolean" } },
    });
    const [wanted] = parsed.positionals;
    const isUsable = wanted === undefined || /^[0-9a-f]{1,64}$/i.test(wanted);
    if (parsed.positionals.length > 1 || !isUsable) return "One deployment's number, or one commit.";
    return parsed;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
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

function refuse(text: string): number {
  process.stderr.write(`hotpush: ${text}\n`);
  return 1;
}
