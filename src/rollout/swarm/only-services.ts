import { ProblemError } from "../../problems.ts";

/**
 * The part of a stack file that is about the services `names`, with all that is not a service: `docker stack deploy` can
 * only deploy a whole file, and leaves services alone that are not in it.
 *
 * @param file what `docker stack config` wrote: each service is a key of `services`, a level deeper than that
 * @throws ProblemError `compose_invalid` where one of them is not found
 */
export function onlyServices(file: string, names: readonly string[]): string {
  const lines = file.split("\n");
  const from = lines.indexOf("services:") + 1;
  const indent = /^ +/.exec(lines[from] ?? "")?.[0] ?? "";
  const length = lines.slice(from).findIndex((line) => line !== "" && !line.startsWith(" "));
  const to = length < 0 ? lines.length : from + length;
  const wanted = new Set(names);
  const kept: string[] = [];
  let isWanted = false;
  for (const line of lines.slice(from, to)) {
    const name = line.startsWith(`${indent} `) ? null : keyOf(line);
    if (name !== null) isWanted = wanted.delete(name);
    if (isWanted) kept.push(line);
  }
  if (wanted.size > 0) throw notFound([...wanted]);
  return [...lines.slice(0, from), ...kept, ...lines.slice(to)].join("\n");
}

/** Names that YAML would take for something else (a number) are in quotation marks. */
function keyOf(line: string): string | null {
  return /^ *"?([^\s":]+)"?:/.exec(line)?.[1] ?? null;
}

function notFound(names: readonly string[]): ProblemError {
  const detail = `docker stack config does not show the service ${names.join(", ")}. Nothing more was deployed.`;
  return new ProblemError({ code: "compose_invalid", detail });
}
