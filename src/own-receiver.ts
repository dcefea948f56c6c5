import type { AddressInfo } from "node:net";
import type { MachineSettings } from "./config/machine.ts";
import type { Log } from "./log.ts";
import { closeServer, listen } from "./platform/listening.ts";
import type { ProjectService } from "./project-service.ts";
import type { ProjectServices } from "./project-services.ts";
import { onlyProjectName } from "./projects/project.ts";
import { namedWebhooks } from "./receiver/named-webhooks.ts";
import { createReceiver } from "./receiver/server.ts";
import type { Webhook } from "./receiver/webhook.ts";

/** How long open requests may take to be answered when everything else has stopped. */
const lastAnswersMs = 1_000;

export interface OwnReceiverOptions {
  readonly machine: MachineSettings;
  readonly services: ProjectServices;
  readonly findFault: () => string | null;
  readonly stopping: AbortSignal;
  readonly log: Log;
}

/** The port of the process that also deploys. */
export interface OwnReceiver {
  readonly address: AddressInfo;
  readonly close: () => Promise<void>;
}

/**
 * Opens the port for the pushes of all projects, each recorded in the queue of its project.
 *
 * @throws ProblemError if the port is not free
 */
export async function openOwnReceiver(options: OwnReceiverOptions): Promise<OwnReceiver> {
  const { machine, services, findFault, stopping, log } = options;
  const { bodyLimitBytes, trustedProxies, projectsPath } = machine;
  const findNamed = createWebhooks(services);
  const receiver = createReceiver({
    ...{ bodyLimitBytes, trustedProxies, log },
    findWebhook: projectsPath === null ? onlyWebhook(findNamed) : namedWebhooks(findNamed),
    webhookPath: projectsPath === null ? "/webhook" : "/webhook/<project>",
    findFault: () => (stopping.aborted ? "The service is stopping." : findFault()),
    isStopping: () => stopping.aborted,
  });
  await listen(receiver, machine, "WEBHOOK");
  return {
    address: receiver.address() as AddressInfo,
    close: () => closeServer(receiver, lastAnswersMs),
  };
}

type FindWebhook = (name: string) => Webhook | null;

function onlyWebhook(find: FindWebhook): FindWebhook {
  return (path) => (path === "/webhook" ? find(onlyProjectName) : null);
}

/** A webhook is made again when the settings of its project have changed. */
function createWebhooks(services: ProjectServices): FindWebhook {
  const webhooks = new WeakMap<object, Webhook>();
  return (name) => {
    const service = services.find(name);
    if (!service?.isServed()) return null;
    const parts = service.parts();
    const known = webhooks.get(parts);
    if (known) return known;
    const webhook = webhookOf(service);
    webhooks.set(parts, webhook);
    return webhook;
  };
}

function webhookOf(service: ProjectService): Webhook {
  const { settings, refs, secretUses, dryRun } = service.parts();
  const { secrets, repository } = settings;
  return {
    ...(service.name === onlyProjectName ? {} : { project: service.name }),
    ...{ secrets, repository, refs, dryRun, onVerified: secretUses.note },
    record: service.accept,
  };
}
