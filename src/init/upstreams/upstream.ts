import type { Choices } from "./choices.ts";
import type { Endpoint } from "./endpoints.ts";

/** What is known and decided before the plan is made. */
export interface UpstreamOptions {
  /** The project's name on the machine part. */
  readonly project: string;
  /** The host name, or the address, at which the project is reached; null: not known. */
  readonly name: string | null;
  /** The service that gets that name, if a person chose it. */
  readonly main: string | null;
  readonly choices: Choices;
  /** Whether Caddy has ports 80 and 443 of the machine; else another proxy is in front of the machine's services. */
  readonly isCaddyPublic: boolean;
  /** Ports of the machine that Caddy has for other projects, or for itself. */
  readonly takenPorts: readonly number[];
}

/** A port that Caddy passes requests to. */
export interface Upstream {
  readonly service: string;
  /** The port in the container. */
  readonly port: number;
  readonly place: SitePlace;
  readonly isMain: boolean;
  /** The ports of the machine that Caddy takes over, as a person writes them. */
  readonly published: readonly string[];
}

/** A service that others of the project reach through Caddy, by the label `hotpush.internal`. */
export interface InternalService {
  readonly service: string;
  /** The port in the container. */
  readonly port: number;
}

/** A host name, or a port of Caddy's own, bound to `address` ("" for all). */
export type SitePlace =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "port"; readonly port: number; readonly address: string };

/** A port that stays published as it is. */
export interface LeftPort {
  readonly endpoint: Endpoint;
  /** A phrase: "SSH", "a database". */
  readonly reason: string;
  /** Whether a person left it so. */
  readonly isByChoice: boolean;
  /** Whether it may speak HTTP: then a person could be asked. */
  readonly isInDoubt: boolean;
}

/** Where published ports end. */
export interface PlacedPorts {
  /** The main one first. */
  readonly upstreams: readonly Upstream[];
  readonly left: readonly LeftPort[];
}
