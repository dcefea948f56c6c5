import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv } from "node:util";
import { machineProject, machineServices } from "../config/machine-part.ts";
import type { SetupServices } from "../init/compose-services.ts";
import { hasOwnCertificate } from "../init/on-machine/page.ts";
import { type GivenOnMachine, type MachineSetup, planOnMachine } from "../init/on-machine/plan-on-machine.ts";
import { writeOnMachine } from "../init/on-machine/write.ts";
import { buildOwnImage, hasImageOfVersion, hasOwnImage, ownImage } from "../init/own-image.ts";
import type { SetupProject } from "../init/project.ts";
import { sendHttp } from "../platform/http.ts";
import { runCommand } from "../platform/run-command.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { CommandError } from "../problems.ts";
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
  if (options.page) await untilPageAnswers(options.page, setup.place, env);
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

/** Caddy gets a certificate within seconds if it can get one. */
const pageWithinMs = 60_000;
const [pauseMs, answerTimeoutMs] = [200, 10_000];
const signedOut = 401;

/**
 * Asks the page as a visitor of `url` does who is not signed in, but at Caddy of this machine: from inside, a name may lead
 * elsewhere.
 *
 * @throws CommandError with the cause if it does not answer within a minute, or Caddy gets no certificate
 */
async function untilPageAnswers(
  url: URL,
  { ports }: MachineSetup["place"],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const hasTls = hasOwnCertificate(url, { ports });
  const target = new URL(hasTls ? `https://127.0.0.1:${ports.https}` : `http://127.0.0.1:${ports.http}`);
  const request = { headers: { host: url.host }, timeoutMs: answerTimeoutMs, acceptsAnyCertificate: true };
  const deadlineMs = performance.now() + pageWithinMs;
  for (;;) {
    const answer = await sendHttp(target, request).catch((error: NodeJS.ErrnoException) => error);
    if ("status" in answer && answer.status === signedOut) return;
    const refusal = hasTls && !("status" in answer) ? await certificateRefusal(url.hostname, env) : null;
    if (refusal !== null) {
      throw new CommandError(
        `The page is set up, but Caddy has no certificate for ${url.hostname}: ${refusal}\nIt needs a DNS record of ${url.hostname} with the address of this server, and ports 80 and 443 open to the internet. Caddy tries again by itself. To check: hotpush init --page ${url.origin}`,
      );
    }
    if (performance.now() > deadlineMs) {
      const said = "status" in answer ? `status ${answer.status}` : (answer.code ?? answer.message);
      throw new CommandError(
        `The page does not answer at ${url.origin} (${said}). Its log and Caddy's may say why: docker logs --tail 20 hotpush-page-1; docker logs --tail 20 hotpush-caddy-1`,
      );
    }
    await sleep(pauseMs);
  }
}

/** Why Caddy got no certificate for a name just now, by its log; null if it has not failed. */
async function certificateRefusal(name: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const argv = ["docker", "logs", "--since", "1m", `${machineProject}-${machineServices.caddy}-1`] as const;
  let reason: string | null = null;
  const onLine = (line: string) => {
    if (!line.includes("will retry") || !line.includes(`[${name}]`)) return;
    reason = (JSON.parse(line) as { readonly error?: string }).error ?? null;
  };
  await runCommand({ argv, env, timeoutMs: answerTimeoutMs, onLine });
  return reason;
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
