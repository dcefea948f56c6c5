import { parseEnv } from "node:util";
import type { SetupServices } from "../init/compose-services.ts";
import { type GivenOnMachine, type MachineSetup, planOnMachine } from "../init/on-machine/plan-on-machine.ts";
import { writeOnMachine } from "../init/on-machine/write.ts";
import { buildOwnImage, hasImageOfVersion, hasOwnImage, ownImage } from "../init/own-image.ts";
import type { SetupProject } from "../init/project.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { print } from "./command.ts";
import type { InitOptions } from "./init-options.ts";
import { canAsk, mayChange, personAtTerminal, takeDefaults } from "./init-questions.ts";
import { dryRun, printDifferences, printStates, printWebhookForm } from "./init-report.ts";
import { printMachineNotes, printMachineProject } from "./machine-report.ts";
import { startOnMachine } from "./start-on-machine.ts";

/**
 * Sets up a project that the machine part deploys, and makes and starts that if it is not there.
 *
 * @returns the exit code
 */
export async function initOnMachine(
  project: SetupProject,
  services: SetupServices,
  options: InitOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { yes = false, check = false } = options;
  const setup = await planOnMachine(project, services, env, givenIn(options), questionsFor(yes || check));
  printMachineProject(setup);
  await printPlan(setup, env);
  const isImageThere = await hasNeededImage(setup, env);
  if (check) return reportCheck(setup, isImageThere);
  if (!(await mayChange(filesOf(setup), yes))) return 1;
  writeOnMachine(setup);
  printMachineNotes(setup);
  if (!isImageThere) await buildOwnImage(env);
  await startOnMachine(setup, env);
  await printEnd(setup, env);
  return 0;
}

/** What the command line gives. */
export function givenIn(options: InitOptions): GivenOnMachine {
  const { url = null, host = null, service = null, project = null, page = null, at: places = [] } = options;
  return { url, host, service, project, page, places };
}

/** The questions for a person at the terminal; none if nobody is there, or if `asksNothing`. */
export function questionsFor(asksNothing: boolean) {
  return canAsk() && !asksNothing ? personAtTerminal : takeDefaults;
}

/** Prints what happens to each file. */
export async function printPlan(
  { place, project, machineFiles, checkoutFiles }: MachineSetup,
  env: NodeJS.ProcessEnv,
) {
  print(`In ${place.files.path}, for all projects of this machine:`);
  printStates(machineFiles);
  print("", `In ${project.root}:`);
  printStates(checkoutFiles);
  await printDifferences([...machineFiles, ...checkoutFiles], env);
}

function filesOf({ machineFiles, checkoutFiles }: MachineSetup) {
  return [...machineFiles, ...checkoutFiles];
}

/** A machine part that is there keeps its image, unless an earlier run could not build it: `hotpush upgrade` replaces it. */
async function hasNeededImage({ place }: MachineSetup, env: NodeJS.ProcessEnv): Promise<boolean> {
  if (place.isNew) return await hasOwnImage(env);
  return place.env.HOTPUSH_IMAGE !== ownImage || (await hasImageOfVersion(env));
}

function reportCheck(setup: MachineSetup, isImageThere: boolean): number {
  if (!isImageThere) print(`The image ${ownImage} would be built.`);
  return isImageThere && isUnchanged(setup) ? 0 : 1;
}

function isUnchanged(setup: MachineSetup): boolean {
  return filesOf(setup).every(({ state }) => state === "right");
}

async function printEnd(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  const { project, host, address, place, name, machineFiles } = setup;
  const secretFile = `${place.files.projectsPath}/${name}.env`;
  const settings = parseEnv(machineFiles.find(({ path }) => path === secretFile)?.text ?? "");
  const { payloadUrl } = address;
  const secret = settings.WEBHOOK_SECRET ?? null;
  printWebhookForm({ host, remote: project.remote, payloadUrl, secret, secretFile });
  const result = isUnchanged(setup)
    ? await dryRun({ project, payloadUrl, host, settings: { ...settings, ...env } })
    : null;
  if (result !== null) print(`\n${wrapFor(process.stdout, result)}`);
  else print("\nNext:", "  docker compose up -d", "  hotpush send --dry-run");
  if (setup.page !== null) print("", `The page is at ${setup.page.origin}. To sign in: hotpush open`);
  else if (place.isNew)
    print("", "For a page that shows all this: hotpush init --page https://<another name of this server>");
}
