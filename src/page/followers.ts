import type { ControlEvent } from "../control/deployment-json.ts";
import { repeat } from "../platform/repeat.ts";
import type { Refused, RunClient, Visit } from "./run-client.ts";

/** Gets what happens to a deployment. */
export interface EventReader {
  readonly onEvent: (event: ControlEvent) => void;
  /** Resolves when more of the log so far can be taken. */
  readonly ready: () => Promise<void>;
  /** @param isOver whether the deployment has ended; if not, the reader may go on where it was */
  readonly onEnd: (isOver: boolean) => void;
}

export interface Following {
  readonly kind: "following";
  readonly start: (reader: EventReader) => void;
  readonly stop: () => void;
}

/** Streams of `run`, each shared by all readers of one deployment. */
export interface Followers {
  /** @param from `<attempt>:<byte>`, the place after the last line that the reader has; null: from the beginning */
  readonly follow: (visit: Visit, id: number, from: string | null) => Promise<Following | Refused>;
}

/** A token may be revoked while its reader shares a stream that another one opened. */
const recheckMs = 30_000;
/** What came while a slow reader was still reading the log so far; it goes on by itself where it was. */
const mostHeld = 10_000;

export function createFollowers(run: RunClient): Followers {
  const streams = new Map<number, SharedStream>();

  function streamOf(id: number, visit: Visit): SharedStream {
    const open = streams.get(id) ?? openShared(run, id, visit, () => streams.delete(id));
    streams.set(id, open);
    return open;
  }

  return {
    async follow(visit, id, from) {
      const known = await run.call(visit, "GET", `/deployments/${id}`);
      if (known.kind === "refused") return known;
      return followFrom(run, visit, { id, from, stream: streamOf(id, visit) });
    },
  };
}

interface Wanted {
  readonly id: number;
  readonly from: string | null;
  readonly stream: SharedStream;
}

function followFrom(run: RunClient, visit: Visit, { id, from, stream }: Wanted): Following {
  const ending = new AbortController();
  let reader: EventReader | null = null;
  let lastByte = Number(from?.split(":")[1] ?? 0);
  /** Events of the stream while the log so far is read; null: it was read. */
  let held: ControlEvent[] | null = [];
  let hasEnded: boolean | null = null;

  // Before the log so far is opened, so that no line falls between the two.
  const leave = stream.join({
    onEvent(event) {
      if (held === null) pass(event);
      else if (held.push(event) > mostHeld) end(false);
    },
    onEnd(isOver) {
      hasEnded = isOver;
      if (held === null) conclude(isOver).catch(() => end(false));
    },
  });
  // A `run` that does not answer revokes nothing.
  const rechecking = repeat(endIfRevoked, { intervalMs: recheckMs, onFault: () => {} });
  rechecking.start();

  function pass(event: ControlEvent): void {
    if (event.event === "line" && event.endByte <= lastByte) return;
    if (event.event === "line") lastByte = event.endByte;
    reader?.onEvent(event);
  }

  function end(isOver: boolean): void {
    if (ending.signal.aborted) return;
    stop();
    reader?.onEnd(isOver);
  }

  function stop(): void {
    rechecking.stop();
    leave();
    ending.abort();
  }

  async function endIfRevoked(): Promise<void> {
    const answer = await run.call(visit, "GET", "/visitor");
    if (answer.kind === "refused" && answer.status === 401) end(false);
  }

  /** @returns whether the deployment has ended */
  async function readSoFar(): Promise<boolean> {
    const path = `/deployments/${id}/events?follow=false&from=1:${lastByte}`;
    const answer = await run.open(visit, path, ending.signal);
    if ("kind" in answer) throw new Error(answer.detail);
    let isOver = false;
    for await (const event of eventsIn(answer)) {
      isOver = isEnding(event);
      if (event.event === "restarted") lastByte = 0;
      pass(event);
      await reader?.ready();
    }
    return isOver;
  }

  async function begin(): Promise<void> {
    const isOver = await readSoFar();
    const missed = held ?? [];
    held = null;
    if (isOver) return end(true);
    for (const event of missed) pass(event);
    if (hasEnded !== null) await conclude(hasEnded);
  }

  /** The last line has no end until the deployment has one. */
  async function conclude(isOver: boolean): Promise<void> {
    if (isOver) await readSoFar();
    end(isOver);
  }

  return {
    kind: "following",
    start(given) {
      reader = given;
      begin().catch(() => end(false));
    },
    stop,
  };
}

function isEnding(event: ControlEvent): boolean {
  return event.event === "deployment" && event.deployment.finishedAt !== null;
}

interface StreamReader {
  readonly onEvent: (event: ControlEvent) => void;
  readonly onEnd: (isOver: boolean) => void;
}

interface SharedStream {
  /** @returns a function that leaves it */
  readonly join: (reader: StreamReader) => () => void;
}

/** The stream is closed this long after its last reader has left: a page that is loaded again finds it open. */
const keepMs = 5_000;

function openShared(run: RunClient, id: number, visit: Visit, onClosed: () => void): SharedStream {
  const readers = new Set<StreamReader>();
  const ending = new AbortController();
  let closing: NodeJS.Timeout | undefined;
  pump().catch(() => {});

  async function pump(): Promise<void> {
    let isOver = false;
    try {
      const answer = await run.open(visit, `/deployments/${id}/events?from=end`, ending.signal, "shared");
      if ("kind" in answer) return;
      for await (const event of eventsIn(answer)) {
        isOver = isEnding(event);
        for (const reader of readers) reader.onEvent(event);
      }
    } catch {
      // The connection broke off: the readers come back by themselves.
    } finally {
      onClosed();
      for (const reader of readers) reader.onEnd(isOver);
    }
  }

  return {
    join(reader) {
      clearTimeout(closing);
      readers.add(reader);
      return () => {
        readers.delete(reader);
        if (readers.size === 0) closing = setTimeout(() => ending.abort(), keepMs).unref();
      };
    },
  };
}

async function* eventsIn(stream: AsyncIterable<Buffer>): AsyncGenerator<ControlEvent, void, void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as ControlEvent;
  }
}
