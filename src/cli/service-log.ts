import { followRun } from "#calls/client";
import type { ServiceLogEvent } from "#calls/shapes";
import { harmless, type Terminal } from "#platform/terminal";
import { CommandError } from "#problems";
import { untilLeft } from "./command.ts";
import { interruptedExitCode } from "./follow.ts";
import type { ServiceAccess } from "./service-access.ts";

export interface ServiceLogOptions {
  readonly follow?: boolean;
  readonly tail: number;
  readonly json?: boolean;
}

/**
 * Prints what the containers of a service have printed, each line behind the name of its container, and goes on until Ctrl-C.
 *
 * @returns the exit code
 * @throws CommandError if the service went away
 */
export function showServiceLog(
  { place, terminal, whose }: ServiceAccess,
  service: string,
  { follow: isFollowing = false, tail, json = false }: ServiceLogOptions,
): Promise<number> {
  const follow = isFollowing ? "true" : "false";
  return untilLeft(async (signal) => {
    const asked = { ...whose, service, tail, follow } as const;
    for await (const event of followRun(place, "serviceLog", asked, { signal }))
      terminal.print(json ? JSON.stringify(event) : textOf(event, terminal));
    if (signal.aborted) return interruptedExitCode;
    if (!isFollowing) return 0;
    throw new CommandError(`the service went away. When it is back: hotpush logs --service ${service} -f`);
  });
}

function textOf(event: ServiceLogEvent, { paint }: Terminal): string {
  if (event.event === "line") return `${paint("bold", event.container)} | ${harmless(event.line)}`;
  const { container, state, detail } = event;
  const what = state === "unreadable" ? `cannot be read: ${harmless(detail ?? "")}` : `has ${state}`;
  return paint("dim", `${container} ${what}`);
}
