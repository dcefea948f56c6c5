import type { SetupServices } from "../init/compose-services.ts";
import { describeMove, describeMoved } from "../init/move/describe-move.ts";
import type { OldSetup } from "../init/move/old-setup.ts";
import { fileSteps, sitesOf, withOldSetup, writeMachineWide } from "../init/move/plan-move.ts";
import { planOnMachine } from "../init/on-machine/plan-on-machine.ts";
import { buildOwnImage, hasOwnImage } from "../init/own-image.ts";
import type { SetupProject } from "../init/project.ts";
import { moveProject } from "../machine-part/move/move-project.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { print, refuse } from "./command.ts";
import { givenIn, printPlan, questionsFor } from "./init-on-machine.ts";
import type { InitOptions } from "./init-options.ts";
import { mayMove } from "./init-questions.ts";
import { printMachineNotes, printMachineProject } from "./machine-report.ts";

/**
 * Moves a project that has a Hotpush of its own to the machine part, after showing what that does.
 *
 * @returns the exit code
 */
export async function initMoving(
  project: SetupProject,
  services: SetupServices,
  old: OldSetup,
  options: InitOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { yes = false, check = false } = options;
  const given = { ...givenIn(options), service: options.service ?? project.env.HOTPUSH_APP ?? null };
  const planned = await planOnMachine(project, services, env, given, questionsFor(yes || check), project.env);
  const setup = withOldSetup(planned, old);
  printMachineProject(setup);
  await printPlan(setup, env);
  printList(describeMove(old, setup.name));
  print("");
  if (check) return 1;
  if (!(await mayMove(yes))) return 1;
  if (setup.place.isNew && !(await hasOwnImage(env))) await buildOwnImage(env);
  writeMachineWide(setup);
  const ending = await moveProject(old, {
    ...{ part: setup.place, project: setup.name, env, sites: sitesOf(setup), ...fileSteps(setup) },
    services: setup.plan.upstreams.map(({ service }) => service),
    onStep: (text) => print(text),
  });
  if (ending.kind === "stayed") {
    return refuse(`${ending.reason} The project was not moved; its own Hotpush goes on as before.`);
  }
  print("");
  printList(describeMoved(old, { ...ending, project: setup.name }));
  printMachineNotes(setup);
  return 0;
}

function printList(lines: readonly string[]): void {
  for (const line of lines) print(wrapFor(process.stdout, `- ${line}`, "  "));
}
