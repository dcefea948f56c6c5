import type { AddressInfo } from "node:net";
import { secretFingerprint } from "./config/secret.ts";
import type { Config, Environment } from "./config.ts";
import { type CatchUp, createCatchUp } from "./deployments/catch-up.ts";
import { createFeed, type Feed } from "./deployments/feed.ts";
import { createHealthCheck } from "./deployments/health.ts";
import { numberAfter } from "./deployments/insert.ts";
import { findLastDeployedCommit } from "./deployments/list.ts";
import { createQueue, type Queue } from "./deployments/queue.ts";
import { createSecretUses, type SecretUses } from "./deployments/secret-uses.ts";
import { createSourceNote, type ReadSource } from "./deployments/source.ts";
import { noteStep } from "./deployments/steps.ts";
import { openStore, type Store } from "./deployments/store.ts";
import { createHostDirectory } from "./host-directory.ts";
import type { Log } from "./log.ts";
import { createAdmission } from "./receiver/admission.ts";
import { createClientAddress } from "./receiver/client-address.ts";
import { closeReceiver } from "./receiver/close.ts";
import { createDeliveryLog } from "./receiver/delivery-log.ts";
import { listen } from "./receiver/listen.ts";
import { refsOf } from "./receiver/push.ts";
import { createReceiver } from "./receiver/server.ts";
import { makeKeys } from "./receiver/verify.ts";
import { createWebhook } from "./receiver/webhook.ts";
import { createRehearsal } from "./rehearsal.ts";
import { createReplacementCheck, createSelfUpdate } from "./rollout/self-update/self-update.ts";
import { checkScript } from "./runner/check-script.ts";
import { checkTools, toolsForSigners } from "./runner/check-tools.ts";
import { childEnvironment, type EnvironmentOptions } from "./runner/environment.ts";
import { createScriptRedactor, findUnredacted, type SecretSources } from "./runner/known-secrets.ts";
import { lastLoggedId } from "./runner/log-paths.ts";
import { readRemoteHead, readSource } from "./runner/repository.ts";
import { createRunner } from "./runner/runner.ts";
import { takeOver } from "./take-over.ts";

/** How long requests that are under way may take to be answered when nothing else is left to do. */
const lastAnswersMs = 1_000;

export interface Service {
  readonly address: AddressInfo;
  /** Sees the running deployment off, then accepts nothing more and gives everything back. Resolves when all is done. */
  readonly close: () => Promise<void>;
}

/**
 * Wires the stages together and starts them: first what was promised earlier is at hand, then the door is opened.
 *
 * @param env the environment, of which scripts get what the allow-list names
 * @throws ProblemError where the service cannot run like this
 */
export async function startService(config: Config, env: Environment, log: Log): Promise<Service> {
  const { allowedSigners, deployEnv, repoPath, secrets, statePath } = config;
  checkTools(toolsForSigners(allowedSigners, repoPath));
  const stopping = new AbortController();
  const script = { env, deployEnv, repoPath, secrets };
  const store = openStore(statePath);
  if (store.movedAsideTo) tellMovedAside(store.movedAsideTo, log);
  numberAfter(store, lastLoggedId(statePath));
  const feed = createFeed(log);
  const { queue, catchUp } = wireDeployments(config, script, { store, feed, log, stopping: stopping.signal });
  const secretUses = wireSecretUses(config, store, log);
  const findFault = createHealthCheck(store, config.deployTimeoutMs);
  const receiver = wireReceiver({
    ...{ config, script, store, queue, catchUp, secretUses, findFault, log },
    stopping: stopping.signal,
  });
  await listen(receiver, config);
  await tellWhetherScriptCanRun(script, log);
  for (const text of findUnredacted(script)) log.warn({ event: "redaction.too_short" }, text);
  const address = receiver.address() as AddressInfo;
  const scriptEnv = childEnvironment(script);
  const takingOver = takeOver({
    ...{ store, queue, feed, secretUses, catchUp, findFault, statePath, repoPath, address, log },
    refs: refsOf(config.branch),
    hostDirectory: createHostDirectory(scriptEnv.DOCKER_HOST),
    readRemoteHead: (ref) => readRemoteHead(script, ref),
    startedAtMs: Date.now(),
    stopping: stopping.signal,
  });
  let closed: Promise<void> | null = null;
  const close = () => {
    closed ??= closeAll();
    return closed;
  };
  const currentRedactor = createScriptRedactor(script);
  const selfUpdate = createSelfUpdate({
    statePath,
    scriptEnv,
    redact: (text) => currentRedactor().text(text),
    isBusy: queue.isBusy,
    close,
    log,
  });
  selfUpdate.start();
  return { address, close };

  async function closeAll(): Promise<void> {
    stopping.abort();
    selfUpdate.stop();
    catchUp.stop();
    // Until the deployment has ended, all that comes is recorded, for the next service to deploy.
    await queue.stop(config.shutdownGraceMs);
    await closeReceiver(receiver, lastAnswersMs);
    // In this order: the door is for whoever has the lock.
    const taken = await takingOver;
    taken?.door?.close();
    taken?.lock.release();
    secretUses.close();
    store.close();
  }
}

interface DeploymentParts {
  readonly store: Store;
  readonly feed: Feed;
  readonly log: Log;
  readonly stopping: AbortSignal;
}

function wireDeployments(config: Config, script: SecretSources, parts: DeploymentParts) {
  const { store, feed, log, stopping } = parts;
  const { allowedSigners: signersPath, statePath } = config;
  const findLastDeployed = () => findLastDeployedCommit(store);
  const refs = refsOf(config.branch);
  const readSourceOf: ReadSource = (deployment, state) =>
    readSource({ ...script, statePath }, deployment, state);
  const noteSource = createSourceNote(store, readSourceOf);
  const runner = createRunner({
    ...script,
    statePath,
    refs,
    deployTimeoutMs: config.deployTimeoutMs,
    deploySilenceMs: config.deploySilenceMs,
    signing: signersPath === null ? null : { signersPath, findLastDeployed, stopping },
    log,
    onStep(deployment, name) {
      noteStep(store, deployment, name, log);
      noteSource(deployment);
      feed.tell(deployment.id, { kind: "step" });
    },
    onLine: ({ id }, line) => feed.tell(id, { kind: "line", line }),
  });
  const queue = createQueue({
    store,
    runner,
    readSource: readSourceOf,
    isReplaced: createReplacementCheck(config.statePath),
    onChange: (id) => feed.tell(id, { kind: "changed" }),
    log,
  });
  const catchUp = createCatchUp({
    store,
    refs,
    readRemoteHead: (ref) => readRemoteHead(script, ref),
    wake: queue.wake,
    log,
    intervalMs: config.catchUpIntervalMs,
  });
  return { queue, catchUp };
}

function wireSecretUses({ secrets: { current, previous } }: Config, store: Store, log: Log): SecretUses {
  const fingerprints = {
    current: secretFingerprint(current),
    previous: previous && secretFingerprint(previous),
  };
  return createSecretUses({ store, fingerprints, log });
}

interface ReceiverParts {
  readonly config: Config;
  readonly script: EnvironmentOptions;
  readonly store: Store;
  readonly queue: Queue;
  readonly catchUp: CatchUp;
  readonly secretUses: SecretUses;
  readonly findFault: () => string | null;
  readonly stopping: AbortSignal;
  readonly log: Log;
}

function wireReceiver(parts: ReceiverParts) {
  const { config, script, store, queue, catchUp, secretUses, findFault, stopping, log } = parts;
  const deliveryLog = createDeliveryLog(log, createClientAddress(config.trustedProxies));
  const webhook = createWebhook({
    keys: makeKeys(config.secrets),
    bodyLimitBytes: config.bodyLimitBytes,
    repository: config.repository,
    refs: refsOf(config.branch),
    admission: createAdmission(),
    log: deliveryLog,
    async record(push) {
      const recorded = await queue.accept(push);
      if (recorded.doubt) catchUp.settle(recorded.doubt);
      return recorded;
    },
    rehearse: createRehearsal(store, script),
    onVerified: secretUses.note,
  });
  return createReceiver({
    webhook,
    findFault: () => (stopping.aborted ? "The service is stopping." : findFault()),
    bodyLimitBytes: config.bodyLimitBytes,
    isStopping: () => stopping.aborted,
    log: deliveryLog,
  });
}

function tellMovedAside(path: string, log: Log): void {
  const text = `The database was damaged and is now ${path}; the history begins anew`;
  log.error({ event: "store.moved_aside", path }, text);
}

async function tellWhetherScriptCanRun(script: EnvironmentOptions, log: Log): Promise<void> {
  const problem = await checkScript(script.repoPath, childEnvironment(script));
  if (!problem) return;
  log.error({ event: "script.unusable", code: problem.code }, `No push can be deployed: ${problem.detail}`);
}
