import assert from "node:assert/strict";
import { type LoadResult, underLoad } from "./load.ts";
import {
  type Behaviour,
  type Ending,
  makeProject,
  type RolloutOptions,
  type TestProject,
} from "./project.ts";

/** A project with an app that is rolled out repeatedly. */
export interface RolledProject extends TestProject {
  /** Writes a version and rolls it out; each has a commit of its own. */
  readonly deploy: (version: string, behaviour: Behaviour, options?: RolloutOptions) => Promise<Ending>;
  /** Makes sure that `version` serves: deploys it if it does not. */
  readonly serving: (version: string) => Promise<void>;
  /** The version that answers through the proxy. */
  readonly version: () => Promise<string>;
  /** Does `work` under load; no request may fail. */
  readonly underLoad: (work: () => Promise<void>) => Promise<LoadResult>;
}

/** Makes a project and brings its first version up. */
export async function makeRolledProject(
  labEnv: NodeJS.ProcessEnv,
  prepare: (project: TestProject) => Promise<void> = async () => {},
): Promise<RolledProject> {
  const project = await makeProject(labEnv);
  let commit = 0;
  const deploy: RolledProject["deploy"] = async (version, behaviour, options = {}) => {
    await project.write(version, behaviour);
    commit += 1;
    const args = ["--commit", commit.toString(16).padStart(12, "0").padEnd(40, "c"), ...(options.args ?? [])];
    return project.rollOut({ ...options, args });
  };
  const version = async () => {
    const response = await fetch(project.origin, { headers: { connection: "close" } });
    return (await response.text()).split(" ")[0] ?? "";
  };
  const serving = async (wanted: string) => {
    if ((await version()) === wanted) return;
    const { code, output } = await deploy(wanted, "graceful");
    assert.equal(code, 0, output);
    assert.equal(await version(), wanted);
  };
  try {
    await prepare(project);
    const { code, output } = await deploy("first", "graceful");
    assert.equal(code, 0, output);
  } catch (error) {
    await project.remove();
    throw error;
  }
  return { ...project, deploy, serving, version, underLoad: (work) => underLoad(project.origin, work) };
}
