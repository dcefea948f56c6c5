import type { SetupServices } from "../init/compose-services.ts";
import { buildOwnImage, hasOwnImage, ownImage } from "../init/own-image.ts";
import { planSetup, type Setup } from "../init/plan-setup.ts";
import { writePlanned } from "../init/planned-file.ts";
import type { SetupProject } from "../init/project.ts";
import { print } from "./command.ts";
import type { InitOptions } from "./init-options.ts";
import { canAsk, mayChange, personAtTerminal, takeDefaults } from "./init-questions.ts";
import {
  printChanges,
  printNextSteps,
  printNotes,
  printProject,
  printWebhookForm,
  readDotenv,
} from "./init-report.ts";

/**
 * Sets up a project that has a Hotpush of its own: in its compose file, or without one as a service of systemd.
 *
 * @returns the exit code
 */
export async function initAlone(
  project: SetupProject,
  services: SetupServices,
  options: InitOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { url = null, host = null, service = null, yes = false, check = false } = options;
  const questions = canAsk() && !yes && !check ? personAtTerminal : takeDefaults;
  const setup = await planSetup(project, services, env, { url, host, service }, questions);
  printProject(setup);
  await printChanges(setup.files, env);
  const isImageThere = !needsImage(setup) || (await hasOwnImage(env));
  if (check) return reportCheck(setup, isImageThere);
  if (!(await mayChange(setup.files, yes))) return 1;
  for (const file of setup.files) writePlanned(file);
  await printNotes(setup);
  if (!isImageThere) await buildOwnImage(env);
  const secret = readDotenv(project.root).WEBHOOK_SECRET ?? null;
  const { payloadUrl } = setup.address;
  printWebhookForm({ host: setup.host, remote: project.remote, payloadUrl, secret, secretFile: ".env" });
  await printNextSteps(setup, env);
  return 0;
}

/** If `.env` names an image, the person chose it. */
function needsImage({ proxy, project }: Setup): boolean {
  return proxy !== null && !project.env.HOTPUSH_IMAGE;
}

function reportCheck({ files }: Setup, isImageThere: boolean): number {
  if (!isImageThere) print(`The image ${ownImage} would be built.`);
  return isImageThere && files.every(({ state }) => state === "right") ? 0 : 1;
}
