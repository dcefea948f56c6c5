import type { AddressInfo } from "node:net";
import type { MachineSettings } from "./config/machine.ts";
import { onlyProjectName } from "./config/project-files.ts";
import type { Log } from "./log.ts";
import { closeServer, listen } from "./platform/listening.ts";
import type { Project } from "./projects/project.ts";
import type { ProjectRegistry } from "./projects/registry.ts";
import { namedWebhooks } from "./receiver/named-webhooks.ts";
import { createReceiver } from "./receiver/server.ts";
import type { Webhook } from "./receiver/webhook.ts";

/** How long open requests may take to be answered when everything else has stopped. */
const lastAnswersMs = 1_000;

export interface OwnReceiverOptions {
  readonly machine: MachineSettings;
  readonly projects: ProjectRegistry;
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
  const { machine, projects, findFault, stopping, log } = options;
  const { bodyLimitBytes, trustedProxies, projectsPath } = machine;
  const findNamed = createWebhooks(projects);
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
function createWebhooks(projects: ProjectRegistry): FindWebhook {
  const webhooks = new WeakMap<object, Webhook>();
  return (name) => {
    const project = projects.find(name);
    if (!project?.isServed) return null;
    const known = webhooks.get(project.config);
    if (known) return known;
    const webhook = webhookOf(project);
    webhooks.set(project.config, webhook);
    return webhook;
  };
}

function webhookOf(project: Project): Webhook {
  const { settings, refs, secretUses } = project;
  const { secrets, repository } = settings;
  return {
    ...(project.name === onlyProjectName ? {} : { project: project.name }),
    ...{ secrets, repository, refs, onVerified: secretUses.note },
    dryRun: (push) => project.dryRun(push),
    record: (push) => project.accept(push),
  };
}
