import type { ComposeModel, ComposeTarget } from "#platform/compose";
import type { Container } from "#platform/docker/containers";
import type { Engine } from "#platform/docker/engine";
import type { RolloutProject, RolloutService } from "./project.ts";
import type { Report } from "./report.ts";
import type { Contents, RolloutState, Version } from "./state.ts";

/** What a roll-out is asked to do. */
export interface RolloutRequest extends RolloutState {
  readonly engine: Engine;
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** Names of services; empty means all of them. */
  readonly names: readonly string[];
  /** The commit to name images after; undefined: the one that is checked out. */
  readonly commit: string | undefined;
  readonly lockWaitS: number;
  readonly withBuild: boolean;
  readonly withPull: boolean;
  /** Goes back to the good version of `commit`, or without one to the previous; null rolls out the sources. */
  readonly back: { readonly commit: string | undefined } | null;
  /** Removes old images while the new version is watched. */
  readonly withPrune: boolean;
  readonly report: Report;
  /** Aborted to stop the roll-out. Services that were not switched yet are then abandoned. */
  readonly signal: AbortSignal;
}

/** What the steps of every roll-out work with, by compose or by Swarm. */
export interface RolloutContext extends RolloutRequest {
  readonly project: RolloutProject;
  /** Images and the version are named after it. */
  readonly commit: string;
  /** The version to go back to; null to roll out the sources. */
  readonly version: Version | null;
  /** The last good version; null before the first one. */
  readonly current: Version | null;
  /** Also held by every command that changes containers. */
  readonly lockDescriptor: number;
}

/** What is known before the project is read. */
export type LockedContext = Omit<RolloutContext, "project">;

/** What the steps of a roll-out by compose work with. */
export interface Rollout extends RolloutContext {
  /** The service in whose container this process runs, if it is the project's. It is none of `project.services`. */
  readonly own: string | null;
  /** Those to roll out. */
  readonly services: readonly RolloutService[];
  /** Of the whole project, before the roll-out changes any. */
  readonly containers: Containers;
  readonly model: ComposeModel;
  /** What the services get from the checkout; git is asked while images are built. */
  readonly contents: Promise<ServiceContents>;
  /** Null if the project has no live files. */
  readonly liveDirectory: LiveDirectory | null;
  /** The live files that the proxy reads; null if it does not say. */
  readonly liveFilesRead: ReadonlySet<string> | null;
  /** Null if Caddy does not log requests. */
  readonly requestCount: RequestCount | null;
}

/** By the names of services; null where git failed. */
export type ServiceContents = Readonly<Record<string, Contents | null>>;

/** The live files of one project, and the proxy that reads them. */
export interface LiveDirectory {
  readonly path: string;
  /** The socket of Caddy's admin API (`admin unix//run/live/admin.sock`), which is never on a port. */
  readonly adminSocket: string;
  /** The name of the project on the server, whose Caddy also reads files of other projects; else null. */
  readonly project: string | null;
}

/** Some containers of one service. */
export type Containers = readonly Container[];

/** The containers of each service before the roll-out changes any, by the service's name. */
export type RunningContainers = ReadonlyMap<string, Containers>;

/** What the steps of one service work with. */
export interface ServiceRollout extends Omit<Rollout, "liveDirectory"> {
  readonly service: RolloutService;
  /** The directory whose live file directs the requests of this service; null if none does (a worker). */
  readonly directedBy: LiveDirectory | null;
}

/** A site of Caddy that passes requests to a service, after its old version was asked there. */
export interface Site {
  readonly url: string;
  /** Sends the same request to `containers`. @returns null if they answer as well as the old version, else the answer */
  readonly worseAnswerOf: (containers: Containers, signal: AbortSignal) => Promise<string | null>;
}

/** The count of the requests of users during the roll-out, by Caddy's log. */
export interface RequestCount {
  /** The requests so far to the containers with these hosts. */
  readonly to: (hosts: readonly string[]) => Answered;
  /**
   * Leaves a request of ours out of the count, by the host and port that it is about to name.
   *
   * @returns what Caddy logs of it, or null if nothing within some seconds
   */
  readonly leaveOut: (host: string) => () => Promise<LoggedRequest | null>;
  /** Whether one of ours was answered, and the log shows neither that nor any other. */
  readonly isBlind: () => boolean;
}

/** A request in Caddy's log. */
export interface LoggedRequest {
  /** As the client named it. */
  readonly authority: string;
  /** In small letters, without a port. */
  readonly host: string;
  /** The host that Caddy tried last, such as the name of a container; null if that is not known. */
  readonly container: string | null;
  /**
   * `answered`: by the app. `server error`: with 5xx, by the app. `failed`: by Caddy, because the app did not. `broke off`: the
   * app or the client ended the connection in the middle of the answer. `left`: the client left before the answer.
   */
  readonly outcome: "answered" | "server error" | "failed" | "broke off" | "left";
  /** Until the answer had been sent. */
  readonly durationMs: number;
}

/** The requests to some containers, and those of them that got 5xx, or that the containers did not answer. */
export interface Answered {
  readonly requests: number;
  readonly bad: number;
  /** How long the answers took, the newest of each container, and when they were seen. */
  readonly durationsMs: readonly number[];
  readonly answeredAtMs: readonly number[];
}
