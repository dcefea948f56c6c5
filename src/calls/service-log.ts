import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { Log } from "#log";
import { cutFrames, type Frame, inspectContainer } from "#platform/docker/containers";
import { connectEngine, EngineRefusal, filteredBy, getJson, openEngine } from "#platform/docker/engine";
import { secretsIn } from "#platform/docker/health";
import type { Project } from "#projects/project";
import type { Redactor } from "#redaction";
import { createLineCutter } from "#runner/log-file";
import { readLines } from "./client.ts";
import type { Stream } from "./context.ts";
import type { ServiceLogEvent } from "./shapes.ts";
import { eventStream } from "./streams.ts";
import { refuse, type TakenBy } from "./table.ts";

/** The services of a project that have containers, running or not. @throws ProblemError if the engine does not answer */
export async function findServices(project: Project): Promise<readonly string[]> {
  return await servicesIn(await sourceOf(project));
}

async function servicesIn(source: Source): Promise<readonly string[]> {
  const containers = await listContainers(source);
  return [...new Set(containers.map(({ service }) => service))].sort();
}

/**
 * What the containers of a service have printed, then print: also those that a roll-out starts meanwhile. A reader that is slow
 * makes the engine wait, which has the lines on disk: nothing is lost, and no container is held up.
 *
 * @throws ProblemError `not_found` with the services that there are, or if the engine does not answer
 */
export async function openServiceLog(
  project: Project,
  asked: Omit<TakenBy<"serviceLog">, "project">,
  log: Log,
): Promise<Stream> {
  const source = await sourceOf(project);
  const services = await servicesIn(source);
  if (services.length === 0)
    refuse("not_found", `There are no containers of a compose project in ${source.directory}.`);
  if (!services.includes(asked.service))
    refuse(
      "not_found",
      `No containers of a service ${asked.service} were found. The services are: ${services.join(", ")}.`,
    );
  return eventStream<ServiceLogEvent>(log, (textOf, signal) => {
    // Each container waits for the reader. After it has left, nobody else takes an error, which would end the process.
    const texts = new PassThrough().setMaxListeners(0).on("error", () => {});
    const send = async (event: ServiceLogEvent) => {
      if (!texts.write(textOf(event))) await once(texts, "drain", { signal });
    };
    const fail = (error: Error) => texts.destroy(error);
    readContainers(source, asked, send, fail, signal).then(() => texts.end(), fail);
    return texts;
  });
}

interface ServiceContainer {
  readonly id: string;
  readonly service: string;
  /** As compose names it: `web-2`. */
  readonly name: string;
}

type Source = Awaited<ReturnType<typeof sourceOf>>;

async function sourceOf(project: Project) {
  const { environment, redactor, secretCommands } = project.script();
  /** As the engine's host has it. */
  const directory = await project.hostDirectory(project.settings.repoPath);
  /** The variables whose values commands print: a container may have got them. */
  const secretNames = Object.keys(secretCommands);
  return { dockerHost: environment.DOCKER_HOST, directory, redactor, secretNames };
}

const label = "com.docker.compose";
type Labels = Readonly<Record<string, string>>;

/** The oldest first. */
async function listContainers(source: Source): Promise<readonly ServiceContainer[]> {
  const path = `/containers/json?all=1&${filteredBy({ label: [`${label}.oneoff=False`] })}`;
  const engine = connectEngine(source.dockerHost);
  const listed = await getJson<readonly { readonly Id: string; readonly Labels: Labels }[]>(engine, path);
  return listed.flatMap(({ Id, Labels }) => containerIn(source, Id, Labels)).reverse();
}

/** The compose file may be in a directory of the checkout. */
function containerIn({ directory }: Source, id: string, labels: Labels): readonly ServiceContainer[] {
  const isOwn = `${labels[`${label}.project.working_dir`]}/`.startsWith(`${directory}/`);
  const service = labels[`${label}.service`];
  if (!isOwn || !service || labels[`${label}.oneoff`] !== "False") return [];
  return [{ id, service, name: `${service}-${labels[`${label}.container-number`]}` }];
}

type Send = (event: ServiceLogEvent) => Promise<void>;

/** Reads all containers of a service at once; those that start later from their first line on. */
async function readContainers(
  source: Source,
  { service, tail, since, follow }: Omit<TakenBy<"serviceLog">, "project">,
  send: Send,
  fail: (error: Error) => void,
  signal: AbortSignal,
): Promise<void> {
  const isFollowing = follow === "true";
  const first = since === undefined ? null : momentOf(since);
  // One that is started again is read on from its last line, when the reading before has ended.
  const readings = new Map<string, Promise<string | null>>();
  const read = (container: ServiceContainer, lines: string) => {
    const before = readings.get(container.id);
    const reading = (before ?? Promise.resolve(first)).then((from) =>
      readContainer(
        source,
        container,
        { from, lines, isFollowing, isNew: before === undefined },
        send,
        signal,
      ),
    );
    reading.catch(fail);
    readings.set(container.id, reading);
    return reading;
  };
  const filters = { type: ["container"], event: ["start"], label: [`${label}.service=${service}`] };
  // Before the list, so that none that starts in between is missed.
  const path = `/events?${filteredBy(filters)}`;
  const starts = isFollowing ? await openEngine(source.dockerHost, path, signal) : null;
  for (const container of await listContainers(source)) {
    if (container.service !== service) continue;
    const reading = read(container, since === undefined ? String(tail) : "all");
    if (!isFollowing) await reading;
  }
  if (starts === null) return;
  for await (const { Actor } of readLines<EngineEvent>(starts, signal))
    for (const container of containerIn(source, Actor.ID, Actor.Attributes)) read(container, "all");
  throw new Error("The Docker engine went away.");
}

interface EngineEvent {
  readonly Actor: { readonly ID: string; readonly Attributes: Labels };
}

interface Reading {
  /** The time of the last line that the reader has. */
  readonly from: string | null;
  /** How many of the last lines, or `all`. */
  readonly lines: string;
  readonly isFollowing: boolean;
  readonly isNew: boolean;
}

/**
 * Sends the lines of a container until it has ended, without the secrets of the project and its own.
 *
 * @returns the time of the last one
 */
async function readContainer(
  { dockerHost, redactor, secretNames }: Source,
  { id, name: container }: ServiceContainer,
  { from, lines, isFollowing, isNew }: Reading,
  send: Send,
  signal: AbortSignal,
): Promise<string | null> {
  const note = (state: "begun" | "ended" | "unreadable", detail: string | null = null) =>
    (isFollowing || detail !== null) && send({ event: "container", container, state, detail });
  let hasBegun = isNew;
  if (isNew) await note("begun");
  const query = new URLSearchParams({ stdout: "1", stderr: "1", timestamps: "1", tail: lines });
  if (isFollowing) query.set("follow", "1");
  if (from !== null) query.set("since", secondsOf(from));
  let last = from;
  let fault: string | null = null;
  try {
    const inspected = await inspectContainer(connectEngine(dockerHost), id);
    const secrets = inspected ? secretsIn(inspected) : [];
    const printed = secretNames.map((name) => valueIn(inspected?.environment ?? [], name));
    const answer = await openEngine(dockerHost, `/containers/${id}/logs?${query}`, signal);
    for await (const line of linesIn(answer, from, redactor([...secrets, ...printed]))) {
      if (!hasBegun) await note("begun");
      hasBegun = true;
      await send({ event: "line", container, ...line });
      if (last === null || line.printedAt > last) last = line.printedAt;
    }
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    // It was removed, or is just now. Else its logs cannot be read, because of their driver.
    if (error.status !== 404 && error.status !== 409) fault = error.message;
  }
  if (hasBegun) await note(fault === null ? "ended" : "unreadable", fault);
  return last;
}

function valueIn(environment: readonly string[], name: string): string {
  return environment.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
}

/** As the engine writes it before each line, so that texts can be compared: in UTC, with nine digits. */
function momentOf(moment: string): string {
  const fraction = /\.(\d+)/.exec(moment)?.[1] ?? "";
  return `${new Date(moment).toISOString().slice(0, 19)}.${fraction.padEnd(9, "0")}Z`;
}

/** As the engine takes it. */
function secondsOf(moment: string): string {
  return `${Math.floor(Date.parse(moment) / 1_000)}${moment.slice(19, 29)}`;
}

const timed = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) /;
const timeBytes = 31;
/** The engine's own pieces of a long line are shorter. */
const mostRawBytes = 64 * 1024;

/** @param from lines that are not later are left out: the engine repeats those of this moment */
async function* linesIn(
  answer: AsyncIterable<Buffer> & { readonly headers: Readonly<Record<string, unknown>> },
  from: string | null,
  redactor: Redactor,
): AsyncGenerator<{ readonly line: string; readonly printedAt: string }, void, void> {
  const cut = String(answer.headers["content-type"]).includes("raw-stream") ? cutRaw : cutFrames;
  // A container writes to two streams, the lines of which are cut apart.
  const cutters = new Map<number, ReturnType<typeof createLineCutter>>();
  let lines: { line: string; printedAt: string }[] = [];
  let printedAt = "";
  let rest = Buffer.alloc(0);
  const onLine = (line: string) => lines.push({ line: line.replace(/\r$/, ""), printedAt });
  const take = ({ stream, bytes }: Frame) => {
    const [head = "", time = printedAt] = timed.exec(bytes.toString("latin1", 0, timeBytes)) ?? [];
    if (from !== null && time <= from) return;
    printedAt = time;
    const cutter = cutters.get(stream) ?? createLineCutter(onLine, redactor);
    cutters.set(stream, cutter);
    cutter.push(bytes.subarray(head.length));
  };
  for await (const chunk of answer) {
    const { frames, rest: begun } = cut(Buffer.concat([rest, chunk]));
    rest = Buffer.from(begun);
    for (const frame of frames) take(frame);
    yield* lines;
    lines = [];
  }
  // The last line of a terminal may have no end.
  if (cut === cutRaw) take({ stream: 1, bytes: rest });
  for (const cutter of cutters.values()) cutter.finish();
  yield* lines;
}

/** Of a container with a terminal: the engine writes the time of a long line before each piece of it. */
function cutRaw(raw: Buffer): { readonly frames: readonly Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = [];
  let at = 0;
  for (;;) {
    const end = raw.indexOf("\n", at) + 1;
    const line = raw.subarray(at, end || raw.length);
    const piece = line.indexOf(line.subarray(0, timeBytes), timeBytes);
    if (piece <= 0 && end === 0) break;
    const bytes = piece > 0 ? line.subarray(0, piece) : line;
    frames.push({ stream: 1, bytes });
    at += bytes.length;
  }
  const rest = raw.subarray(at);
  if (rest.length <= mostRawBytes) return { frames, rest };
  return { frames: [...frames, { stream: 1, bytes: rest }], rest: raw.subarray(raw.length) };
}
