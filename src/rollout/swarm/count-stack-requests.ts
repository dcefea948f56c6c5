import { setTimeout as sleep } from "node:timers/promises";
import { plainLog } from "../../platform/docker/diagnosis.ts";
import { type Engine, getJson } from "../../platform/docker/engine.ts";
import type { SiteRequests } from "../../site-requests.ts";
import { note } from "../report/report.ts";
import { stackCountingLines } from "../requests/caddy-lines.ts";
import { hostOfLeaver } from "../requests/clients-that-left.ts";
import { createTally, readLoggedRequest } from "../requests/tally.ts";
import type { StackRollout } from "./stack.ts";
import { listOfStack } from "./swarm-service.ts";

type Counted = Pick<StackRollout, "engine" | "project" | "report">;

/** Until the last lines have come to Docker's log. */
const settleMs = 300;

/**
 * Does `work`, and reports the requests that Caddy logged meanwhile on all nodes, whether the work succeeds or not. Without the
 * lines in its Caddyfile that this needs, it reports those lines. Nothing that goes wrong with the count changes the roll-out.
 */
export async function withStackRequestsCounted<Result>(
  rollout: Counted,
  work: () => Promise<Result>,
): Promise<Result> {
  const reportRequests = await startCounting(rollout).catch(
    (error: unknown) => () => noteFault(rollout, error),
  );
  try {
    return await work();
  } finally {
    await reportRequests().catch((error: unknown) => noteFault(rollout, error));
  }
}

async function noteFault({ report }: Counted, error: unknown): Promise<void> {
  note({ report }, `the requests cannot be counted: ${error instanceof Error ? error.message : error}`);
}

/** @returns what reports the requests since the start */
async function startCounting({ engine, project, report }: Counted): Promise<() => Promise<void>> {
  const proxies = await findProxies(engine, project.name);
  if (proxies.length === 0) return async () => {};
  const logging = proxies.filter(({ logsRequests }) => logsRequests);
  if (logging.length === 0)
    return async () => report({ event: "requests", sites: null, missingLines: stackCountingLines });
  const sinceMs = Date.now();
  const before = await addressesOf(engine, project.name);
  return async () => {
    await sleep(settleMs);
    const logs = await Promise.all(logging.map(({ id }) => linesSince(engine, id, sinceMs)));
    report({ event: "requests", sites: sitesIn(logs.flat(), before), missingLines: [] });
  };
}

/** A service that has a Caddyfile as a config. */
interface Proxy {
  readonly id: string;
  readonly logsRequests: boolean;
}

interface ListedService {
  readonly ID: string;
  readonly Spec: {
    readonly TaskTemplate: {
      readonly ContainerSpec?: { readonly Configs?: readonly { readonly ConfigID: string }[] | null };
    };
  };
}

async function findProxies(engine: Engine, stack: string): Promise<readonly Proxy[]> {
  const services = await listOfStack<ListedService>(engine, stack, "/services?");
  const found = services.map(async ({ ID, Spec }) => {
    const configs = Spec.TaskTemplate.ContainerSpec?.Configs ?? [];
    const texts = await Promise.all(configs.map(({ ConfigID }) => configText(engine, ConfigID)));
    const caddyfile = texts.find((text) => /^[ \t]*reverse_proxy\b/m.test(text));
    const needed = stackCountingLines.filter((line) => line.startsWith("log_append"));
    const logsRequests = needed.every((line) => caddyfile?.includes(line));
    return caddyfile === undefined ? [] : [{ id: ID, logsRequests }];
  });
  return (await Promise.all(found)).flat();
}

async function configText(engine: Engine, id: string): Promise<string> {
  const { Spec } = await getJson<{ readonly Spec: { readonly Data?: string } }>(engine, `/configs/${id}`);
  return Buffer.from(Spec.Data ?? "", "base64").toString();
}

interface ListedTask {
  readonly NetworksAttachments?: readonly { readonly Addresses?: readonly string[] | null }[] | null;
}

/** Of all its tasks in all networks: Caddy knows them by nothing else. */
async function addressesOf(engine: Engine, stack: string): Promise<ReadonlySet<string>> {
  const tasks = await listOfStack<ListedTask>(engine, stack, "/tasks?", { "desired-state": ["running"] });
  const attachments = tasks.flatMap(({ NetworksAttachments }) => NetworksAttachments ?? []);
  const addresses = attachments.flatMap(({ Addresses }) => Addresses ?? []);
  return new Set(addresses.map((address) => address.replace(/\/\d+$/, "")));
}

/** The log of a service has the lines of its tasks on all nodes. */
async function linesSince(engine: Engine, id: string, sinceMs: number): Promise<readonly string[]> {
  const since = (sinceMs / 1_000).toFixed(3);
  return plainLog(await engine.get(`/services/${id}/logs?stdout=1&stderr=1&since=${since}`)).split("\n");
}

/** @param before the addresses of the tasks that ran before the roll-out */
function sitesIn(lines: readonly string[], before: ReadonlySet<string>): readonly SiteRequests[] {
  const tally = createTally((address) => !before.has(address));
  const left = new Map<string, number>();
  for (const line of lines) {
    const leaver = hostOfLeaver(line);
    if (leaver !== null) left.set(leaver, (left.get(leaver) ?? 0) + 1);
    const request = line.includes('"logger":"http.log.access') ? readLoggedRequest(line) : null;
    if (request !== null) tally.add(request);
  }
  return tally.sites((host) => left.get(host) ?? 0);
}
