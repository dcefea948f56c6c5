import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Behaviour, makeProject, type TestProject } from "../../test/lab/project.ts";
import type { LoadReport } from "./load-process.ts";
import type { Deployed, Way } from "./ways.ts";

/** Time between two roll-outs, to measure the load without one. */
const quietMs = 1_500;

/** One way to roll out, measured on one kind of app. */
export interface Measurement {
  readonly way: string;
  readonly app: Behaviour;
  readonly rollouts: readonly Rollout[];
  readonly report: LoadReport;
}

export interface Rollout extends Deployed {
  readonly startMs: number;
  readonly endMs: number;
}

/** Rolls out `count` versions one after the other under load, in a project of its own. */
export async function measure(
  way: Way,
  app: Behaviour,
  count: number,
  env: NodeJS.ProcessEnv,
): Promise<Measurement> {
  const project = await makeProject(env);
  try {
    project.env.STOP_GRACE = "5s"; // For the app that ignores SIGTERM: 20 roll-outs with a longer period would take too long.
    await way.prepare(project);
    await project.write("v0", app);
    await project.docker("compose", "up", "--detach", "--build", "--wait");
    await way.start(project);
    const { report, rollouts } = await underLoad(project, () => deployAll(way, app, project, count));
    return { way: way.name, app, rollouts, report };
  } finally {
    await project.remove();
  }
}

async function underLoad(project: TestProject, work: () => Promise<readonly Rollout[]>) {
  const load = fork(join(import.meta.dirname, "load-process.ts"), [project.origin], { detached: true });
  try {
    await sleep(quietMs);
    const rollouts = await work();
    load.send("stop");
    const [report]: LoadReport[] = await once(load, "message");
    return { report: report ?? { answers: [] }, rollouts };
  } finally {
    load.kill();
  }
}

async function deployAll(
  way: Way,
  app: Behaviour,
  project: TestProject,
  count: number,
): Promise<readonly Rollout[]> {
  const rollouts: Rollout[] = [];
  for (let round = 1; round <= count; round += 1) {
    await project.write(`v${round}`, app);
    const startMs = Date.now();
    const deployed = await way.deploy(project);
    rollouts.push({ ...deployed, startMs, endMs: startMs + deployed.durationMs });
    await way.settle(project);
    await sleep(quietMs);
  }
  return rollouts;
}
