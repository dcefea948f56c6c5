import type { EventEmitter } from "node:events";
import { stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { BlockList } from "node:net";
import { join } from "node:path";
import * as v from "valibot";
import type { Visitor } from "#access/visitor";
import type { Notify } from "#config/project";
import { stateDirectoryOf } from "#config/state-path";
import type { CatchUpReport } from "#deployments/catch-up";
import type { MainRef } from "#deployments/push";
import type { Queue, Turns } from "#deployments/queue";
import { findDeployment } from "#deployments/store";
import type { Log } from "#log";
import type { RemoteHead } from "#platform/git";
import type { Store } from "#platform/sqlite";
import { printable } from "#platform/terminal";
import type { HttpProblemCode } from "#problems";
import type { Project } from "#projects/project";
import type { ProjectRegistry } from "#projects/registry";
import type { Taking } from "#projects/take-pushes";
import type { Examiner } from "./examiner.ts";
import type { Shaped } from "./shapes.ts";

/**
 * Who may call. A viewer looks and an operator acts: both are visitors of the page. Over the operator's socket everything is
 * allowed; what needs `server` is allowed there only. `scraper` is a viewer, or an address that may read the metrics.
 */
export type Right = "nobody" | "scraper" | "viewer" | "operator" | "server";

/** Who calls. */
export interface Caller {
  /** null: somebody with the operator's socket, or somebody who signs in. */
  readonly visitor: Visitor | null;
  /** The name for the record: proven by a credential, or as a command reports it. */
  readonly name: string | null;
  /** Where the visitor is, as the page reports it. */
  readonly address: string | null;
  readonly agent: string | null;
}

/** The members of what a call takes: those named in its path, then the query of a GET and the body of a POST. */
export type Takes = Readonly<Record<string, v.GenericSchema>>;
export type Taken<Of extends Takes> = {
  readonly [Key in keyof v.InferOutput<v.StrictObjectSchema<Of, undefined>>]: v.InferOutput<
    v.StrictObjectSchema<Of, undefined>
  >[Key];
};

/** An answer that is text, or goes on. */
export interface Stream {
  readonly kind: "stream";
  /** If it is another than the row says. */
  readonly type?: string;
  /** Resolves when nothing that it does can fail any more but what has its own place for faults. */
  readonly write: (response: ServerResponse) => void | Promise<void>;
}

/** What a call answers if it does not do what was asked: what is refused, why, and the next step. */
export interface Refused {
  readonly kind: "refused";
  readonly code: HttpProblemCode;
  readonly detail: string;
}

/** One row of the table of calls. */
export interface Call<
  Of extends Takes = Takes,
  Gives extends v.GenericSchema | string = v.GenericSchema | string,
> {
  readonly does: string;
  readonly method: "GET" | "POST";
  /** With `:name` for each member of `takes` that is in it. */
  readonly path: string;
  readonly right: Right;
  readonly takes: Of;
  /** The shape of its JSON, or the media type of its text. */
  readonly gives: Gives;
  /** 202: it begins something that goes on. */
  readonly status?: 202;
  readonly handle: (server: ServerContext, asked: Taken<Of>, caller: Caller) => Promised<Gives>;
}

type Given<Gives> = Gives extends v.GenericSchema ? Shaped<Gives> : Stream;
type Promised<Gives> = Given<Gives> | Refused | Promise<Given<Gives> | Refused>;

/** Writes a row: its handler gets what the row takes, and must answer what it gives. */
export function call<const Of extends Takes, const Gives extends v.GenericSchema | string>(
  row: Call<Of, Gives>,
): Call<Of, Gives> {
  return row;
}

/** Writes a row about one project. */
export function projectCall<const Of extends Takes, const Gives extends v.GenericSchema | string>({
  handle,
  ...row
}: Omit<Call<Of, Gives>, "handle"> & {
  readonly handle: (project: ProjectContext, asked: Taken<Of>, caller: Caller) => Promised<Gives>;
}): Call<Of, Gives> {
  return {
    ...row,
    async handle(server, asked, caller) {
      const found = await findContext(server, asked as Whose, true);
      return "kind" in found ? found : await handle(found, asked, caller);
    },
  };
}

export function refuse(code: HttpProblemCode, detail: string): Refused {
  return { kind: "refused", code, detail };
}

const longestName = 100;
const longestReason = 200;

/** A text of a person, printable and of bounded length; null if there is none. */
export function personText(text: string | undefined, mostCharacters = longestReason): string | null {
  return text === undefined ? null : printable(text, mostCharacters).trim() || null;
}

/** The name that a command reports. Nothing proves it. */
export function reportedName(text: string | undefined): string | null {
  return personText(text, longestName);
}

/** A number that comes as JSON, or as text in a path, a query or a form. */
function number(least: number, most: number, action: string) {
  const digits = v.pipe(v.string(), v.regex(/^\d{1,15}$/, action), v.transform(Number));
  return v.pipe(
    v.union([digits, v.number()], action),
    v.number(),
    v.integer(action),
    v.minValue(least, action),
    v.maxValue(most, action),
  );
}

/** What several calls take. */
export const takes = {
  project: v.pipe(v.string(), v.regex(/^(?:_|[a-z0-9][a-z0-9-]{0,38})$/, "This is no name of a project.")),
  /** The devices and inodes of the directories around the caller, by which the usual project is found. */
  within: v.optional(v.pipe(v.string(), v.regex(/^[\d.-]{0,6000}$/, "`within` must be devices and inodes."))),
  id: v.union([
    v.literal("latest"),
    number(0, Number.MAX_SAFE_INTEGER, "`id` must be a number, or `latest`."),
  ]),
  number: number(1, Number.MAX_SAFE_INTEGER, "`id` must be a number."),
  limit: v.optional(number(1, 1_000, "`limit` must be a number from 1 to 1,000.")),
  place: number(0, Number.MAX_SAFE_INTEGER, "A place in a log must be a number of bytes."),
  before: v.optional(number(0, Number.MAX_SAFE_INTEGER, "`before` must be the number of a deployment.")),
  text: v.pipe(v.string("A text was expected."), v.minLength(1, "The text is empty."), v.maxLength(1_000)),
} as const;

/** The members of a call about one project. In its path, `_` is the usual one. */
export const ofProject = { project: takes.project, within: takes.within } as const;
/** The members of a call about a project, or about all. */
export const ofProjectOrAll = { project: v.optional(takes.project), within: takes.within } as const;
/** The members of a call about a deployment, whose number is enough; `latest` is that of a project. */
export const ofDeployment = { id: takes.id, ...ofProjectOrAll } as const;

/** The operator's socket of the service whose state is in `statePath`. */
export function operatorSocketPath(statePath: string): string {
  return join(statePath, "control.sock");
}

/** What the handlers need of the service. */
export interface ServerContext {
  /** The whole database. */
  readonly store: Store;
  readonly events: EventEmitter;
  /** What is wrong with the service, or null. */
  readonly findFault: () => string | null;
  /** What is wrong with the server; nothing without one. */
  readonly findServerFaults: () => readonly string[];
  /** The webhook's; null: it does not listen in this process. */
  readonly address: { readonly address: string; readonly port: number } | null;
  readonly startedAtMs: number;
  /** Who may run a deployment, of all projects. */
  readonly turns: Pick<Turns, "holdAll" | "holds">;
  /** null: `front` is in this process. */
  readonly taking: Taking | null;
  /** Answers a call of `front`, which needs nobody's credential; null if it has no such call. */
  readonly answerFront: Taking["answer"];
  /** null: only the operator's shell has what the doctor needs. */
  readonly examiner: Examiner | null;
  readonly log: Log;
  /** Where people reach the page; null: there is none. */
  readonly pageUrl: URL | null;
  /** Addresses from which the metrics may be read without a token. */
  readonly metricsNetworks: BlockList;
  /** Who may visit; opened when it is first asked for. */
  readonly access: () => Store;
  readonly statePath: string;
  readonly projects: ProjectRegistry;
}

/** The same for one project, with its settings as they are now. */
export interface ProjectContext extends ServerContext {
  readonly project: string;
  /** The project's view of the database. */
  readonly store: Store;
  readonly queue: Pick<Queue, "request" | "cancel" | "wake" | "findGuarded" | "goBack">;
  readonly secretUses: Project["secretUses"];
  /** The branches that are deployed: both, or the one that BRANCH names. */
  readonly refs: readonly MainRef[];
  readonly catchUp: { readonly report: () => CatchUpReport };
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  /** The directory with the project's logs. */
  readonly logStatePath: string;
  /** The state directory of `hotpush rollout` in the project's scripts. */
  readonly rolloutStatePath: string;
  readonly repoPath: string;
  readonly notify: Notify;
  readonly settings: Project["settings"];
  /** Whether the project's settings are there; if not, nothing is started. */
  readonly isServed: boolean;
  /** What is wrong with the project's settings, or null. */
  readonly fault: string | null;
  /** The path of a directory on the host, which identifies a project in roll-outs; the same outside of a container. */
  readonly hostDirectory: (directory: string) => Promise<string>;
}

export function contextOf(server: ServerContext, project: Project): ProjectContext {
  const { name, store, queue, statePath: logStatePath, settings, refs, script, isServed } = project;
  const { catchUp, readRemoteHead } = project;
  return {
    ...server,
    ...{ project: name, store, queue, refs, catchUp, readRemoteHead, logStatePath, isServed },
    secretUses: () => project.secretUses(),
    hostDirectory: (directory) => project.hostDirectory(directory),
    rolloutStatePath: stateDirectoryOf(script().environment),
    ...{ repoPath: settings.repoPath, notify: settings.notify, settings },
    fault: server.projects.faults().get(name) ?? null,
  };
}

export interface Whose {
  readonly id?: number | "latest" | undefined;
  readonly project?: string | undefined;
  readonly within?: string | undefined;
}

/**
 * Finds the project that a call is about: that of the deployment in its path, the one that it names, the one whose checkout
 * the command was called in, or the only one. If there is none, the files of the projects are read again first: it may have
 * been added just now.
 *
 * @returns null if it is about none of them alone
 */
export async function findContext(
  server: ServerContext,
  whose: Whose,
  mustBeOne: true,
): Promise<ProjectContext | Refused>;
export async function findContext(
  server: ServerContext,
  whose: Whose,
  mustBeOne: false,
): Promise<ProjectContext | Refused | null>;
export async function findContext(
  server: ServerContext,
  whose: Whose,
  mustBeOne: boolean,
): Promise<ProjectContext | Refused | null> {
  let found = await lookUp(server, whose);
  if (found === null ? mustBeOne : "kind" in found) {
    server.projects.refresh();
    found = await lookUp(server, whose);
  }
  if (found !== null || !mustBeOne) return found;
  const advice = "Which project? Run this in its checkout, or add --project <name>.";
  return refuse("input_invalid", `${advice} ${known(server)}`);
}

async function lookUp(server: ServerContext, whose: Whose): Promise<ProjectContext | Refused | null> {
  const { id = "latest", within } = whose;
  const named = whose.project === "_" ? undefined : whose.project;
  const deployment = id === "latest" ? null : findDeployment(server.store, id);
  if (deployment !== null && named !== undefined && named !== deployment.project)
    return refuse(
      "not_found",
      `Deployment ${id} is one of the project ${deployment.project}, not of ${named}.`,
    );
  const name = deployment?.project ?? named ?? (await usualProject(server, within));
  if (name === null) return id === "latest" ? null : noDeployment(id);
  const project = server.projects.find(name);
  if (project) return contextOf(server, project);
  const fault = server.projects.faults().get(name);
  if (fault) return refuse("not_found", `Project ${name} has faulty settings: ${fault}`);
  return refuse("not_found", `There is no project ${name}. ${known(server)}`);
}

export function noDeployment(id: number | "latest"): Refused {
  return refuse(
    "not_found",
    id === "latest"
      ? "Nothing was deployed yet. Push to main, or run: hotpush deploy"
      : `There is no deployment ${id}; it may have been pruned. See: hotpush history`,
  );
}

function known(server: ServerContext): string {
  const names = projectNames(server);
  return names.length === 0 ? "There are no projects yet." : `The projects are: ${names.join(", ")}.`;
}

/** All but those that were removed while the service runs. */
function projectNames({ projects }: ServerContext): readonly string[] {
  const served = projects.list().filter(({ isServed }) => isServed);
  return [...new Set([...served.map(({ name }) => name), ...projects.faults().keys()])].sort();
}

/**
 * The only project, else the one whose checkout is one of the directories in `within`, the innermost first. They are compared
 * by device and inode: a path may lead elsewhere in a container, and through links.
 */
async function usualProject(server: ServerContext, within: string | undefined): Promise<string | null> {
  const [first = null, ...others] = projectNames(server);
  if (others.length === 0 || within === undefined) return others.length === 0 ? first : null;
  const checkouts = server.projects.list().map(async ({ name, settings }) => {
    const stats = await stat(settings.repoPath, { bigint: true }).catch(() => null);
    return [stats && `${stats.dev}.${stats.ino}`, name] as const;
  });
  const names = new Map(await Promise.all(checkouts));
  const found = within.split("-").find((directory) => names.has(directory));
  return (found && names.get(found)) ?? null;
}
