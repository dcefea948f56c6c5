import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProjectFiles } from "#config/project-files";
import type { ServiceSettings } from "#config/service";
import type { Log } from "#log";
import { closeServer, listen } from "#platform/http-server";
import { ProblemError } from "#problems";
import { askOverSocket, openSpool, type Spool } from "./webhook/spool.ts";
import { createReceiver } from "./webhook/webhook.ts";

/** How long open requests may take to be answered when the service stops. */
const lastAnswersMs = 3_000;

interface FrontOptions {
  readonly service: ServiceSettings;
  readonly files: ProjectFiles;
  /** What is wrong with `run`, if it is in this process. */
  readonly findFault: () => string | null;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  readonly log: Log;
}

export interface RunningFront {
  /** The webhook's. */
  readonly address: AddressInfo;
  readonly close: () => Promise<void>;
}

/**
 * Starts everything that reads bytes from outside: the webhook, which verifies pushes and puts them into the spool, and the
 * page, if it has an address. It has nothing but the spool and the socket of `run`.
 *
 * @throws ProblemError if it cannot run with these settings
 */
export async function startFront(options: FrontOptions): Promise<RunningFront> {
  const { service, files, stopping, log } = options;
  const spool = await openSpoolOf(service, log);
  const receiver = createReceiver({
    findProject: files.find,
    isOnly: service.projectsPath === null,
    spool,
    bodyLimitBytes: service.bodyLimitBytes,
    trustedProxies: service.trustedProxies,
    findFault: () =>
      stopping.aborted ? "The service is stopping." : (options.findFault() ?? spool.findFault()),
    stopping,
    log,
  });
  const page = service.pageUrl && (await makePage(service, service.pageUrl, log));
  await listen(receiver, service, "WEBHOOK_PORT");
  if (page) await listen(page, { host: service.host, port: service.pagePort }, "PAGE_PORT");
  if (page)
    log.info({ event: "page.started", port: service.pagePort }, `The page is at ${service.pageUrl?.origin}`);
  return {
    address: receiver.address() as AddressInfo,
    async close() {
      files.stop();
      await Promise.all([closeServer(receiver, lastAnswersMs), page && closeServer(page, 0)]);
      await spool.close();
    },
  };
}

async function openSpoolOf({ spoolPath, frontSocket }: ServiceSettings, log: Log): Promise<Spool> {
  try {
    return await openSpool({ directory: spoolPath, askRun: askOverSocket(frontSocket), log });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const detail = `The spool ${spoolPath} cannot be used (${code ?? message}). Give the user of the service a directory that it can write to.`;
    throw new ProblemError({ code: "state_unusable", detail });
  }
}

/** Nothing of the page is loaded if there is none, and little before somebody comes. */
async function makePage(
  { trustedProxies, frontSocket, isBadgePublic }: ServiceSettings,
  pageUrl: URL,
  log: Log,
): Promise<Server> {
  const [{ createPage }, { connectRun }] = await Promise.all([
    import("./page/page.ts"),
    import("./page/run-client.ts"),
  ]);
  return createPage({ pageUrl, trustedProxies, isBadgePublic }, connectRun(frontSocket), log);
}
