import type { SwarmService } from "../../src/rollout/roll-out-stack.ts";

type Task = SwarmService["tasks"][number];
type UpdateStatus = NonNullable<SwarmService["update"]>;

/** A service of a stack as tests need it: two tasks, both running, never updated; but for `differences`. */
export function sampleSwarmService(differences: Partial<SwarmService> = {}): SwarmService {
  return {
    id: "service-1",
    name: "app",
    version: 10,
    image: "shop-app:111111111111",
    previousImage: null,
    definition: "one",
    spec: {},
    desiredTasks: 2,
    runningTasks: 2,
    tasks: [],
    update: null,
    isJob: false,
    ...differences,
  };
}

export function sampleUpdate(state: UpdateStatus["state"], startedAt: string = "10:00"): UpdateStatus {
  return { state, startedAt, message: `update ${state}` };
}

/** A running task of it, but for `differences`. */
export function sampleTask(differences: Partial<Task> = {}): Task {
  return {
    id: "x7f2a9k1",
    name: "app.1.x7f2a",
    state: "running",
    isWanted: true,
    error: "",
    containerId: "c1",
    environment: [],
    ...differences,
  };
}
