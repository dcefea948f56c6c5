import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { underLoad } from "./load.ts";
import {
  type Behaviour,
  makeProject,
  outputOf,
  type RolloutOptions,
  type TestProject,
  versionAt,
} from "./project.ts";

/** A project with an app that is rolled out repeatedly. */
export type RolledProject = Awaited<ReturnType<typeof makeRolledProject>>;

/** Makes a project and brings its first version up. */
export async function makeRolledProject(
  labEnv: NodeJS.ProcessEnv,
  prepare: (project: TestProject) => Promise<void> = async () => {},
) {
  const project = await makeProject(labEnv);
  let commit = 0;
  const deploy = async (version: string, behaviour: Behaviour, options: RolloutOptions = {}) => {
    await project.write(version, behaviour);
    commit += 1;
    const args = ["--commit", commit.toString(16).padStart(12, "0").padEnd(40, "c"), ...(options.args ?? [])];
    return project.rollOut({ ...options, args });
  };
  const version = () => versionAt(project.origin);
  const serving = async (wanted: string) => {
    if ((await version()) === wanted) return;
    await outputOf(deploy(wanted, "graceful"));
    assert.equal(await version(), wanted);
  };
  try {
    await prepare(project);
    await outputOf(deploy("first", "graceful"));
  } catch (error) {
    await project.remove();
    throw error;
  }
  return {
    ...project,
    /** Writes a version and rolls it out; each has a commit of its own. */
    deploy,
    /** Makes sure that `version` serves: deploys it if it does not. */
    serving,
    /** Sets the project's additional services, until the next call. */
    alsoHas: (services: Readonly<Record<string, unknown>>) =>
      writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ services })),
    /** The version that answers through the proxy. */
    version,
    /** Does `work` under load; no request may fail. */
    underLoad: (work: () => Promise<void>) => underLoad(project.origin, work),
  };
}
