import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { MachineSettings } from "./config/machine.ts";
import type { ProjectConfig, ProjectFiles } from "./config/project-files.ts";
import { type Inbox, openInbox } from "./inbox/inbox.ts";
import { serveInbox } from "./inbox/serve-inbox.ts";
import type { Log } from "./log.ts";
import { waitForLock } from "./platform/file-lock.ts";
import { keepTrying } from "./platform/keep-trying.ts";
import { closeServer, listen } from "./platform/listening.ts";
import { isSystemError } from "./platform/run-command.ts";
import { namedWebhooks } from "./receiver/named-webhooks.ts";
import { refsOf } from "./receiver/push.ts";
import { createReceiver } from "./receiver/server.ts";
import type { Webhook } from "./receiver/webhook.ts";
import type { RunningService } from "./run.ts";

/** How long open requests may take to be answered when the service stops. */
const lastAnswersMs = 1_000;

/**
 * Starts the internet side: it verifies pushes, stores them in its inbox and offers them to the process that deploys. It
 * has no other way to do anything.
 *
 * @throws ProblemError if it cannot run with these settings
 */
export async function startReceive(
  machine: MachineSettings,
  projects: ProjectFiles,
  log: Log,
): Promise<RunningService> {
  const inbox = openInbox(machine.statePath);
  if (inbox.movedAsideTo) logMovedAside(inbox.movedAsideTo, log);
  const stopping = new AbortController();
  const receiver = createReceiver({
    findWebhook: webhooksOf(projects, inbox),
    webhookPath: "/webhook/<project>",
    bodyLimitBytes: machine.bodyLimitBytes,
    trustedProxies: machine.trustedProxies,
    findFault: () => (stopping.signal.aborted ? "The service is stopping." : inbox.findFault()),
    isStopping: () => stopping.signal.aborted,
    log,
  });
  await listen(receiver, machine, "WEBHOOK");
  const offering = offerInbox(machine, inbox, log, stopping.signal);
  projects.watch(() => {});
  return {
    address: receiver.address() as AddressInfo,
    async close() {
      if (stopping.signal.aborted) return;
      stopping.abort();
      projects.stop();
      await closeServer(receiver, lastAnswersMs);
      (await offering)?.close();
      inbox.close();
    },
  };
}

/**
 * Offers the inbox on its socket, once this instance is the only one of its directory that does.
 *
 * @returns null if the service stopped first
 */
async function offerInbox(
  { statePath, inboxSocket }: MachineSettings,
  inbox: Inbox,
  log: Log,
  signal: AbortSignal,
): Promise<{ readonly close: () => void } | null> {
  const onWait = () =>
    log.info({ event: "inbox.waiting" }, "Another instance offers the inbox; this one stores");
  const lockOnce = () => waitForLock(join(statePath, "inbox.lock"), { signal, onWait });
  const options = { canPass: isSystemError, signal, log };
  const what = "This instance cannot find out whether another one offers the inbox";
  const lock = await keepTrying(lockOnce, { ...options, what });
  if (lock === null) return null;
  const serve = () => serveInbox(inbox, inboxSocket, log);
  const socket = await keepTrying(serve, { ...options, what: `The socket ${inboxSocket} cannot be made` });
  return {
    close() {
      socket?.close();
      lock.release();
    },
  };
}

function webhooksOf(projects: ProjectFiles, inbox: Inbox): (path: string) => Webhook | null {
  // A project is another object when its settings change.
  const webhooks = new WeakMap<ProjectConfig, Webhook>();
  return namedWebhooks((name) => {
    const project = projects.find(name);
    if (project === null) return null;
    const known = webhooks.get(project);
    if (known) return known;
    const webhook = webhookOf(project, inbox);
    webhooks.set(project, webhook);
    return webhook;
  });
}

function webhookOf({ name, settings }: ProjectConfig, inbox: Inbox): Webhook {
  return {
    project: name,
    secrets: settings.secrets,
    repository: settings.repository,
    refs: refsOf(settings.branch),
    record: (push) => inbox.add(name, push),
    dryRun: (push) => inbox.dryRun(name, push),
    onVerified: (slot, host, deliveryId) => inbox.noteSecretUse({ project: name, slot, host, deliveryId }),
  };
}

function logMovedAside(path: string, log: Log): void {
  const text = `The inbox was damaged and is now ${path}. Pushes in it that were not recorded yet are found by catch-up`;
  log.error({ event: "store.moved_aside", path }, text);
}
