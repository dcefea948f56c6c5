import type { Command } from "commander";
import { shortCommit } from "../commit-names.ts";
import type { ProjectJson } from "../control/projects.ts";
import { fit, formatTable, wrapText } from "../platform/terminal/layout.ts";
import type { Terminal } from "../platform/terminal/terminal.ts";
import { type CommandContext, newCommand } from "./command.ts";
import { localTime, pauseText, stateText } from "./deployment-text.ts";
import { accessService } from "./service-access.ts";

/** `hotpush projects`: what is live of each project, and what keeps it from being deployed. */
export function makeProjectsCommand({ env, finish }: CommandContext): Command {
  const description =
    "List the projects: their branches, what is live and since when, how the last deployment ended, and whether the queue is paused or the settings are faulty.";
  return newCommand("projects", description, [
    "hotpush projects          the list for a person",
    "hotpush projects --json   the same for a program",
  ])
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json }: { readonly json?: boolean }) => {
      const { get, terminal } = accessService(env, {});
      const list = await get<{ projects: readonly ProjectJson[] }>("/projects");
      terminal.print(...(json ? [JSON.stringify(list)] : projectLines(list.projects, terminal)));
      finish(0);
    });
}

const indent = "    ";

/** A line for each project, and further ones for what is live and what holds it. */
function projectLines(projects: readonly ProjectJson[], { paint, columns }: Terminal): readonly string[] {
  if (projects.length === 0) return ["There are no projects yet. Add a file to PROJECTS_PATH."];
  const header = ["Project", "Branch", "Live", "Since", "Last"];
  const rows = projects.map(row);
  const names = [header, ...rows].map(([name = ""]) => name);
  const others = formatTable([header, ...rows].map(([, ...cells]) => cells));
  // A long name is cut, so that the rest fits.
  const short = names.map((name) => fit(name, columns - (others[1] ?? "").length - 2));
  const [first = "", rule = "", ...lines] = formatTable(
    [header, ...rows].map(([, ...cells], index) => [short[index] ?? "", ...cells]),
  );
  const painted = projects.flatMap((project, index) => [lines[index] ?? "", ...notes(project, columns)]);
  return [paint("bold", first), paint("dim", rule), ...painted];
}

function row({ name, branches, live, last }: ProjectJson): readonly string[] {
  const since = live?.since ? localTime(live.since) : "";
  const ending = last ? `${stateText(last)} (${last.id})` : "";
  return [name, branches.join(", "), live ? shortCommit(live.commit) : "", since, ending];
}

function notes({ live, paused, waiting, fault, isServed }: ProjectJson, columns: number): readonly string[] {
  const what = [live?.subject, live?.author].filter(Boolean).join("  ");
  const isRemoved = !isServed && fault === null;
  return [
    what,
    paused ? pauseText(paused) : "",
    waiting > 0 ? `${waiting} ${waiting === 1 ? "waits" : "wait"} in the queue` : "",
    fault === null ? "" : `faulty settings: ${fault}`,
    isRemoved ? "its file was removed, so nothing more is deployed" : "",
  ]
    .filter((text) => text !== "")
    .flatMap((text) => wrapText(indent + text, columns).map((line) => fit(line, columns)));
}
