import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { makeSecret } from "../../src/config/secret.ts";
import type { Deployment, Ending } from "../../src/deployments/deployment.ts";
import { mainRefs } from "../../src/deployments/push.ts";
import { toDeployment } from "../../src/deployments/store.ts";
import { createRunner, type RunnerOptions } from "../../src/runner/runner.ts";
import { createProjectScript, type ScriptSources } from "../../src/runner/script.ts";
import { testSecret } from "./delivery.ts";
import { readLog } from "./records.ts";
import { commitOf } from "./store.ts";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

/** A real runner in the test's own process, and its events. */
export function createTestRunner(scope: Scope, options: Partial<RunnerOptions & ScriptSources> = {}) {
  const statePath = join(temporaryDirectory(scope), "state");
  const repoPath = options.repoPath ?? temporaryDirectory(scope);
  mkdirSync(statePath);
  const lines: string[] = [];
  const steps: string[] = [];
  const write = (text: string) => {
    const { event, msg } = JSON.parse(text) as { event: string; msg: string };
    if (event === "deployment.output") lines.push(msg);
  };
  const { PATH, HOME } = process.env;
  const script = createProjectScript({
    env: { PATH, HOME },
    deployEnv: [],
    repoPath,
    secrets: { current: makeSecret(testSecret), previous: null },
    ...options,
  });
  const runner = createRunner(() => ({
    script: script(),
    statePath,
    refs: mainRefs,
    deployTimeoutMs: 60_000,
    deploySilenceMs: 0,
    log: pino({ base: null }, { write }),
    resolve: async ({ commit }) => ({ kind: "deploy", commit, isSigned: false }),
    imagesFor: () => null,
    onStep: (_deployment, name) => steps.push(name),
    onLine: () => {},
    ...options,
  }));
  let last = 0;
  async function start(script: string, id = last + 1) {
    last = id;
    writeScript(join(repoPath, "deploy.sh"), script);
    const deployment = deploymentWith(id);
    const started = await runner.start(deployment, new AbortController().signal);
    assert.equal(started.kind, "started", JSON.stringify(started));
    return { deployment, run: started.run };
  }
  return {
    runner,
    repoPath,
    statePath,
    /** The lines of the service's output. */
    lines,
    steps,
    /** Starts `script` for a new deployment, or for the one with `id`. */
    start,
    /** Starts `script` and waits until it ends. */
    async run(script: string, id?: number) {
      const { deployment, run } = await start(script, id);
      const ending = await run.ended;
      runner.tidy(deployment.id);
      assert.notEqual(ending.state, "not_started");
      return ending as Ending;
    },
    /** The log file of the deployment that was started last. */
    log: () => readLog(statePath, last),
  };
}

/** A deployment that is running, as the queue hands it to the runner. */
export function deploymentWith(id: number): Deployment {
  const commit = commitOf(String(id));
  const fields = { id, trigger: "push", ref: "refs/heads/main", commit, state: "running", attempts: 1 };
  return toDeployment({ ...fields, project: "default" });
}
