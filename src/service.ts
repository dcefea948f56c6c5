import type { AddressInfo } from "node:net";
import { becomeLeader } from "./become-leader.ts";
import { secretFingerprint } from "./config/secret.ts";
import type { Config, Environment } from "./config.ts";
import { type CatchUp, createCatchUp } from "./deployments/catch-up.ts";
import { numberAfter } from "./deployments/deployment.ts";
import { createHealthCheck } from "./deployments/health.ts";
import { findLastDeployedCommit } from "./deployments/history.ts";
import {
  createEventBus,
  createSourceNote,
  type EventBus,
  noteStep,
  type ReadSource,
} from "./deployments/progress.ts";
import { createQueue, type Queue } from "./deployments/queue.ts";
import { createSecretUses, type SecretUses } from "./deployments/secret-uses.ts";
import { openStore, type Store } from "./deployments/store.ts";
import { createDryRun } from "./dry-run.ts";
import type { Log } from "./log.ts";
import { refsOf } from "./receiver/push.ts";
import { closeReceiver, createReceiver, listen } from "./receiver/server.ts";
import type { Webhook } from "./receiver/webhook.ts";
import { createReplacementCheck, createSelfUpdate } from "./rollout/self-update/self-update.ts";
import { checkTools, logScriptFault, toolsForSigners } from "./runner/check-script.ts";
import { createProjectScript, findUnredacted, type ProjectScript } from "./runner/known-secrets.ts";
import { lastLoggedId } from "./runner/log-file.ts";
import { readRemoteHead, readSource } from "./runner/repository.ts";
import { createRunner } from "./runner/runner.ts";

/** How long open requests may take to be answered when everything else has stopped. */
const lastAnswersMs = 1_000;

export interface RunningService {
  readonly address: AddressInfo;
  /** Waits for the running deployment, then stops all stages. Resolves when that is done. */
  readonly close: () => Promise<void>;
}

/** What the stages share. */
interface Shared {
  readonly config: Config;
  readonly script: ProjectScript;
  readonly store: Store;
  readonly events: EventBus;
  readonly log: Log;
  readonly stopping: AbortSignal;
}

/**
 * Wires the stages together and starts them. Earlier accepted pushes are read before the port opens.
 *
 * @param env the environment; scripts get the variables on the allow-list
 * @throws ProblemError if the service cannot run with this configuration
 */
export async function startService(config: Config, env: Environment, log: Log): Promise<RunningService> {
  const { allowedSigners, deployEnv, repoPath, secrets, statePath } = config;
  checkTools(toolsForSigners(allowedSigners, repoPath));
  const stopping = new AbortController();
  const sources = { env, deployEnv, repoPath, secrets };
  const script = createProjectScript(sources);
  const store = openStore(statePath);
  if (store.movedAsideTo) logMovedAside(store.movedAsideTo, log);
  numberAfter(store, lastLoggedId(statePath));
  const events = createEventBus(log);
  const shared = { config, script, store, events, log, stopping: stopping.signal };
  const deployments = wireDeployments(shared);
  const { queue, catchUp, secretUses } = deployments;
  const findFault = createHealthCheck(store, config.deployTimeoutMs);
  const receiver = wireReceiver(shared, deployments, findFault);
  await listen(receiver, config);
  await logScriptFault(repoPath, script.environment, log);
  // Built now, so that the first push does not wait for it.
  script.redactor();
  for (const text of findUnredacted(sources)) log.warn({ event: "redaction.too_short" }, text);
  const address = receiver.address() as AddressInfo;
  const leading = becomeLeader({
    ...{ ...deployments, store, events, findFault, statePath, repoPath, address, log },
    stopping: stopping.signal,
    refs: refsOf(config.branch),
    hostDirectory: (directory) => hostDirectory(directory, script.environment.DOCKER_HOST),
    readRemoteHead: (ref) => readRemoteHead(script, ref),
    startedAtMs: Date.now(),
  });
  let closed: Promise<void> | null = null;
  const close = () => {
    closed ??= closeAll();
    return closed;
  };
  const redact = (text: string) => script.redactor().text(text);
  const scriptEnv = script.environment;
  const selfUpdate = createSelfUpdate({ statePath, scriptEnv, redact, isBusy: queue.isBusy, close, log });
  selfUpdate.start();
  return { address, close };

  async function closeAll(): Promise<void> {
    stopping.abort();
    selfUpdate.stop();
    catchUp.stop();
    // Until the deployment has ended, every push is recorded, for the next service to deploy.
    await queue.stop(config.shutdownGraceMs);
    await closeReceiver(receiver, lastAnswersMs);
    // In this order: only the holder of the lock may have the control socket.
    const leadership = await leading;
    leadership?.controlSocket?.close();
    leadership?.lock.release();
    secretUses.close();
    store.close();
  }
}

function logMovedAside(path: string, log: Log): void {
  const text = `The database was damaged and is now ${path}; the history starts again`;
  log.error({ event: "store.moved_aside", path }, text);
}

/** Nothing in the service loads code for Docker before somebody rolls back. */
async function hostDirectory(directory: string, dockerHost: string | undefined): Promise<string> {
  const { hostDirectoryOf } = await import("./rollout/compose/locate-project.ts");
  const { connectEngine } = await import("./platform/docker/engine.ts");
  return await hostDirectoryOf(connectEngine(dockerHost), directory);
}

interface Deployments {
  readonly queue: Queue;
  readonly catchUp: CatchUp;
  readonly secretUses: SecretUses;
}

function wireDeployments({ config, script, store, events, log, stopping }: Shared): Deployments {
  const { allowedSigners: signersPath, statePath, secrets } = config;
  const findLastDeployed = () => findLastDeployedCommit(store);
  const refs = refsOf(config.branch);
  const readSourceOf: ReadSource = (deployment, state) => readSource(script, statePath, deployment, state);
  const noteSource = createSourceNote(store, readSourceOf);
  const runner = createRunner({
    ...{ script, statePath, refs, log },
    deployTimeoutMs: config.deployTimeoutMs,
    deploySilenceMs: config.deploySilenceMs,
    signing: signersPath === null ? null : { signersPath, findLastDeployed, stopping },
    onStep(deployment, name) {
      noteStep(store, deployment, name, log);
      noteSource(deployment);
      events.publish(deployment.id, { kind: "step" });
    },
    onLine: ({ id }, line) => events.publish(id, { kind: "line", line }),
  });
  const queue = createQueue({
    ...{ store, runner, readSource: readSourceOf, log },
    isReplaced: createReplacementCheck(statePath),
    onChange: (id) => events.publish(id, { kind: "changed" }),
  });
  const catchUp = createCatchUp({
    ...{ store, refs, request: queue.request, log, intervalMs: config.catchUpIntervalMs },
    readRemoteHead: (ref) => readRemoteHead(script, ref),
  });
  const previous = secrets.previous && secretFingerprint(secrets.previous);
  const fingerprints = { current: secretFingerprint(secrets.current), previous };
  return { queue, catchUp, secretUses: createSecretUses({ store, fingerprints, log }) };
}

function wireReceiver(shared: Shared, deployments: Deployments, findFault: () => string | null) {
  const { config, script, store, log, stopping } = shared;
  const { queue, catchUp, secretUses } = deployments;
  const { bodyLimitBytes, trustedProxies, secrets, repository } = config;
  const webhook: Webhook = {
    ...{ secrets, repository, refs: refsOf(config.branch), onVerified: secretUses.note },
    async record(push) {
      const recorded = await queue.accept(push);
      if (recorded.doubt) catchUp.resolve(recorded.doubt);
      return recorded;
    },
    dryRun: createDryRun(store, script),
  };
  return createReceiver({
    ...{ webhook, bodyLimitBytes, trustedProxies, log },
    findFault: () => (stopping.aborted ? "The service is stopping." : findFault()),
    isStopping: () => stopping.aborted,
  });
}
