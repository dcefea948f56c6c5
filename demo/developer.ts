import { chmodSync, copyFileSync, cpSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expectEqual } from "./expect.ts";
import { git, type Place } from "./git.ts";

/** One push, and the output of the git host's hook about its delivery. */
export interface Pushed {
  readonly version: number;
  readonly commit: string;
  readonly deploymentId: number;
  readonly state: string;
  readonly output: readonly string[];
}

const sampleApp = fileURLToPath(new URL("sample-app", import.meta.url));
const deployScript = fileURLToPath(new URL("../examples/deploy.sh", import.meta.url));

/** Makes the developer's clone at `place`, with the sample app and the example deploy.sh in its first commit. */
export async function startProject(place: Place, remote: string): Promise<void> {
  mkdirSync(place.path);
  await git(place, "init", "--quiet", "--initial-branch=main");
  await git(place, "remote", "add", "origin", remote);
  cpSync(sampleApp, place.path, { recursive: true });
  renameSync(join(place.path, "gitignore"), join(place.path, ".gitignore"));
  copyFileSync(deployScript, join(place.path, "deploy.sh"));
  for (const script of ["deploy.sh", "restart.sh", "healthcheck.sh"])
    chmodSync(join(place.path, script), 0o755);
  await commitVersion(place, 1);
  await git(place, "push", "--quiet", "origin", "main");
}

/**
 * Commits `version` of the app and pushes it.
 *
 * @param buildWaitsFor the build of this version waits until this file exists
 * @throws Unexpected if the push was not delivered or not accepted
 */
export async function pushVersion(place: Place, version: number, buildWaitsFor = ""): Promise<Pushed> {
  const commit = await commitVersion(place, version, buildWaitsFor);
  const { stderr } = await git(place, "push", "origin", "main");
  const output = stderr.split("\n").map((line) => line.trimEnd());
  const said = /webhook answered (\d+): deployment (\d+) is (\w+)/.exec(stderr);
  expectEqual("The status with which the webhook answered the push", said?.[1] ?? output, "202");
  return { version, commit, deploymentId: Number(said?.[2]), state: said?.[3] ?? "", output };
}

/** The versions of the app differ only in these two values. */
async function commitVersion(place: Place, version: number, buildWaitsFor = ""): Promise<string> {
  writeFileSync(join(place.path, "app.env"), `VERSION=${version}\nBUILD_WAITS_FOR='${buildWaitsFor}'\n`);
  await git(place, "add", "--all");
  await git(place, "commit", "--quiet", "--message", `Version ${version}`);
  return (await git(place, "rev-parse", "HEAD")).stdout;
}
