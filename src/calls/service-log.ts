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

interface EngineEvent {
  readonly Actor: { readonly ID: string; readonly Attributes: Labels };
}

/** Reads all containers of a service at once, without secrets; those that start later from their first line on. */
async function readContainers(
  source: Source,
  { service, tail, since, follow }: Omit<TakenBy<"serviceLog">, "project">,
  send: (event: ServiceLogEvent) => Promise<void>,
  fail: (error: Error) => void,
  signal: AbortSignal,
): Promise<void> {
  const { dockerHost, redactor, secretNames } = source;
  const isFollowing = follow === "true";

  /** Sends lines until the container has ended. @returns the time of the last one */
  async function readContainer(
    { id, name: container }: ServiceContainer,
    lines: string,
    from: string | null,
  ) {
    const note = (state: "begun" | "ended" | "unreadable", detail: string | null = null) =>
      (isFollowing || detail !== null) && send({ event: "container", container, state, detail });
    const query = new URLSearchParams({ stdout: "1", stderr: "1", timestamps: "1", follow, tail: lines });
    if (from !== null) query.set("since", String(Math.floor(Date.parse(from) / 1_000)));
    let last = from;
    try {
      const inspected = await inspectContainer(connectEngine(dockerHost), id);
      const printed = (inspected?.environment ?? []).flatMap((one) => {
        const [name = "", value = ""] = one.split(/=(.*)/s);
        return secretNames.includes(name) ? [value] : [];
      });
      const secrets = [...(inspected ? secretsIn(inspected) : []), ...printed];
      const answer = await openEngine(dockerHost, `/containers/${id}/logs?${query}`, signal);
      for await (const line of linesIn(answer, from, redactor(secrets))) {
        if (last === from) await note("begun");
        await send({ event: "line", container, ...line });
        if (last === null || line.printedAt > last) last = line.printedAt;
      }
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      // It was removed, or is just now. Else its logs cannot be read, because of their driver.
      if (error.status !== 404 && error.status !== 409) await note("unreadable", error.message);
    }
    if (last !== from) await note("ended");
    return last;
  }

  // One that is started again is read on from its last line, when the reading before has ended.
  const begin = since ?? (tail === 0 ? new Date().toISOString() : undefined);
  const first = begin === undefined ? null : momentOf(begin);
  const readings = new Map<string, Promise<string | null>>();
  const read = (container: ServiceContainer, lines: string) => {
    const before = readings.get(container.id) ?? Promise.resolve(first);
    const reading = before.then((from) => readContainer(container, lines, from));
    reading.catch(fail);
    readings.set(container.id, reading);
    return reading;
  };
  const filters = { type: ["container"], event: ["start"], label: [`${label}.service=${service}`] };
  // Before the list, so that none that starts in between is missed.
  const path = `/events?${filteredBy(filters)}`;
  const starts = isFollowing ? await openEngine(dockerHost, path, signal) : null;
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

/** As the engine writes it before each line, so that texts can be compared: in UTC, with nine digits. */
function momentOf(moment: string): string {
  const fraction = /\.(\d+)/.exec(moment)?.[1] ?? "";
  return `${new Date(moment).toISOString().slice(0, 19)}.${fraction.padEnd(9, "0")}Z`;
}

const timed = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) /;
const timeBytes = 31;
const lineFeed = 0x0a;

/** @param from lines that are not later are left out: the engine repeats those of this second */
async function* linesIn(
  answer: AsyncIterable<Buffer> & { readonly headers: Readonly<Record<string, unknown>> },
  from: string | null,
  redactor: Redactor,
): AsyncGenerator<{ readonly line: string; readonly printedAt: string }, void, void> {
  const hasTerminal = String(answer.headers["content-type"]).includes("raw-stream");
  let lines: { line: string; printedAt: string }[] = [];
  let printedAt = "";
  const onLine = (line: string) => {
    const [head = "", time = printedAt] = timed.exec(line) ?? [];
    printedAt = time;
    if (from === null || time > from)
      lines.push({ line: line.slice(head.length).replace(/\r$/, ""), printedAt });
  };
  // A container without a terminal writes to two streams, the lines of which are cut apart.
  const begin = () => ({ cutter: createLineCutter(onLine, redactor), isInLine: false });
  const streams = new Map<number, ReturnType<typeof begin>>();
  const take = ({ stream, bytes }: Frame) => {
    const known = streams.get(stream) ?? begin();
    streams.set(stream, known);
    // The engine writes the time of a long line before each piece of it.
    const [head = ""] = (known.isInLine && timed.exec(bytes.toString("latin1", 0, timeBytes))) || [];
    known.cutter.push(bytes.subarray(head.length));
    known.isInLine = !hasTerminal && bytes.at(-1) !== lineFeed;
  };
  let rest = Buffer.alloc(0);
  for await (const chunk of answer) {
    const whole = Buffer.concat([rest, chunk]);
    const cut = hasTerminal ? { frames: [{ stream: 1, bytes: whole }], rest: [] } : cutFrames(whole);
    rest = Buffer.from(cut.rest);
    for (const frame of cut.frames) take(frame);
    yield* lines;
    lines = [];
  }
  for (const { cutter } of streams.values()) cutter.finish();
  yield* lines;
}
