import type { MachineSetup } from "../init/on-machine/plan-on-machine.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { print } from "./command.ts";

/** Prints what was found: the project, its remote, and the machine part. */
export function printMachineProject({ project, name, place }: MachineSetup): void {
  const { root, remoteUrl, remote } = project;
  // The URL may have credentials in it; the parsed remote has none.
  const from = remote ? `${remote.hostname}, ${remote.path}` : (remoteUrl ?? "none");
  const state = place.isNew ? ", which is made now: Caddy and Hotpush for all projects" : "";
  const lines = [
    `Project   ${name}, in ${root}`,
    `Remote    ${from}`,
    `Machine   ${place.files.path}${state}`,
  ];
  print(...lines.map((line) => wrapFor(process.stdout, line, "          ")), "");
}

/** Prints what a person should know. */
export function printMachineNotes(setup: MachineSetup): void {
  const { notes, override } = setup;
  const all = [...notes, ...overrideNotes(override.foundBy, override.name)];
  for (const note of all) print(wrapFor(process.stdout, `- ${note}`, "  "));
}

function overrideNotes(foundBy: MachineSetup["override"]["foundBy"], name: string): readonly string[] {
  if (foundBy !== "name") return [];
  return [
    `.env is in the repository, so it stays as it is: compose finds ${name} by its name, and git does not see that file (.git/info/exclude).`,
  ];
}
