import {
  namesRunToTheirEnd,
  type Replacement,
  replacementOf,
  writableVolume,
} from "../../rollout/project.ts";
import type { SetupService, SetupServices } from "../compose-services.ts";
import type { Choices } from "./choices.ts";
import type { InternalService, LeftPort, PlacedPorts } from "./upstream.ts";

/** What the override changes at a service. */
export interface ServiceChange {
  /** Whether Caddy takes the requests to its published ports. */
  readonly isUpstream: boolean;
  /** Whether it joins the network that it shares with Caddy: to be reached by Caddy, or to reach others through it. */
  readonly joins: boolean;
  /** Whether it is in the default network without an entry of its own, which a list of networks would end. */
  readonly isInDefault: boolean;
  /** Its published ports that stay. */
  readonly kept: readonly LeftPort[];
  readonly dropsContainerName: boolean;
  /** The label `hotpush.rollout`; null: none is added. */
  readonly label: "live" | "recreate" | null;
}

export interface DecidedPorts extends PlacedPorts {
  readonly internal: readonly InternalService[];
  readonly choices: Choices;
}

/** The changes by service; a service that stays as it is has none. */
export function changesOf(
  services: SetupServices,
  ports: DecidedPorts,
): Readonly<Record<string, ServiceChange>> {
  const awaited = namesRunToTheirEnd(services);
  const changes = Object.entries(services).flatMap(([name, service]) => {
    const change = changeOf(name, service, ports, awaited.has(name));
    return change.joins || change.label !== null ? [[name, change] as const] : [];
  });
  return Object.fromEntries(changes);
}

function changeOf(
  name: string,
  service: SetupService,
  { upstreams, left, internal, choices }: DecidedPorts,
  isAwaited: boolean,
): ServiceChange {
  const isUpstream = upstreams.some((one) => one.service === name);
  const isInternal = internal.some((one) => one.service === name);
  const change: ServiceChange = {
    isUpstream,
    // Any service may be one that calls another.
    joins: isUpstream || (internal.length > 0 && service.network_mode === undefined),
    isInDefault: service.networks?.default === null,
    kept: left.filter(({ endpoint }) => endpoint.service === name),
    dropsContainerName: (isUpstream || isInternal) && service.container_name !== undefined,
    label: null,
  };
  const labelled = { ...change, label: labelFor(name, service, choices) };
  const isRolled = replacementAfter(service, labelled, isAwaited).how === "roll";
  return isRolled ? labelled : { ...labelled, dropsContainerName: false };
}

function labelFor(name: string, service: SetupService, { writers }: Choices): ServiceChange["label"] {
  if (service.labels?.["hotpush.rollout"] !== undefined || writableVolume(service) === null) return null;
  const answer = writers[name];
  if (answer === undefined) return null;
  return answer ? "live" : "recreate";
}

/** The services behind Caddy of which only a person knows whether two containers may write to their volume at once. */
export function doubtfulWriters(
  services: SetupServices,
  changes: Readonly<Record<string, ServiceChange>>,
): readonly string[] {
  return Object.entries(services).flatMap(([name, service]) => {
    const change = changes[name];
    const hasLabel = change?.label || service.labels?.["hotpush.rollout"] !== undefined;
    if (!change?.isUpstream || hasLabel || writableVolume(service) === null) return [];
    return replacementAfter(service, { ...change, label: "live" }).how === "roll" ? [name] : [];
  });
}

/** How a roll-out replaces `service` once the override has changed it. */
export function replacementAfter(
  service: SetupService,
  change: ServiceChange,
  isAwaited = false,
): Replacement {
  return replacementOf(changed(service, change), isAwaited);
}

/** The services as compose reads them with the override. */
export function servicesAfter(
  services: SetupServices,
  changes: Readonly<Record<string, ServiceChange>>,
): SetupServices {
  const all = Object.entries(services).map(([name, service]) => {
    const change = changes[name];
    return [name, change === undefined ? service : changed(service, change)] as const;
  });
  return Object.fromEntries(all);
}

function changed(service: SetupService, change: ServiceChange): SetupService {
  const { ports = [], container_name: name, labels, ...rest } = service;
  const isKept = ({ target, protocol = "tcp" }: (typeof ports)[number]) =>
    change.kept.some(({ endpoint }) => endpoint.port === target && endpoint.protocol === protocol);
  return {
    ...rest,
    ports: change.isUpstream ? ports.filter(isKept) : ports,
    ...(change.label === null
      ? labels && { labels }
      : { labels: { ...labels, "hotpush.rollout": change.label } }),
    ...(change.dropsContainerName || name === undefined ? {} : { container_name: name }),
  };
}

export function unchanged(service: SetupService): ServiceChange {
  const isInDefault = service.networks?.default === null;
  return { isUpstream: false, joins: false, isInDefault, kept: [], dropsContainerName: false, label: null };
}
