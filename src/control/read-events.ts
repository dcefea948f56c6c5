import { open } from "./client.ts";
import type { ControlEvent } from "./teller.ts";

export interface EventsOptions {
  /** null: the deployment that runs, else the last that did. */
  readonly id: number | null;
  /** Whether to go on until the deployment has ended. */
  readonly isFollowing: boolean;
  readonly signal: AbortSignal;
}

/**
 * Gives the events of a deployment as the service tells them. Ends early where `signal` is aborted or the service goes
 * away: whoever has not seen the deployment finished knows that this is so.
 *
 * @throws NotRunningError, RefusedError as `ask` of client.ts
 */
export async function* readEvents(
  statePath: string,
  { id, isFollowing, signal }: EventsOptions,
): AsyncGenerator<ControlEvent, void, void> {
  try {
    const path = `/deployments/${id ?? "latest"}/events?follow=${isFollowing}`;
    let rest = "";
    const decoder = new TextDecoder();
    for await (const piece of await open(statePath, path, signal)) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as ControlEvent;
    }
  } catch (error) {
    if (!signal.aborted && (error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  }
}
