import { statSync } from "node:fs";
import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv } from "node:util";
import { machineProject, machineServices, serverCommands } from "../config/machine-part.ts";
import { callService, NotRunningError } from "../control/client.ts";
import type { WholeStatusJson } from "../control/status.ts";
import type { SetupServices } from "../init/compose-services.ts";
import { hasOwnCertificate } from "../init/on-machine/page.ts";
import { type GivenOnMachine, type MachineSetup, planOnMachine } from "../init/on-machine/plan-on-machine.ts";
import { writeOnMachine } from "../init/on-machine/write.ts";
import { buildOwnImage, hasImageOfVersion, hasOwnImage, ownImage } from "../init/own-image.ts";
import type { SetupProject } from "../init/project.ts";
import { lastLogLines } from "../platform/docker/diagnosis.ts";
import { connectEngine } from "../platform/docker/engine.ts";
import { sendHttp } from "../platform/http.ts";
import { runCommand, runInForeground } from "../platform/run-command.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { readUser } from "../platform/users.ts";
import { CommandError } from "../problems.ts";
import { secretToSend, send } from "../send/send.ts";
import { makeProjectNetwork } from "../setup/networks.ts";
import { isProjectUp, isUserKnown } from "../setup/place.ts";
import { findMachinePart } from "../setup/server.ts";
import { findOutdated, listMachineContainers, type MachineServices, startHeld } from "../setup/start.ts";
import { print } from "./command.ts";
import type { InitOptions } from "./init-options.ts";
import { canAsk, mayChange, personAtTerminal, takeDefaults } from "./init-questions.ts";
import { dryRun, printDifferences, printStates, printWebhookForm } from "./init-report.ts";
import { printMachineNotes, printMachineProject } from "./machine-report.ts";

/** A step of setting up a project. */
export interface SetupStep {
  readonly name: string;
  /** @throws CommandError if it cannot be done, with the cause */
  readonly run: (setup: MachineSetup, env: NodeJS.ProcessEnv) => void | Promise<void>;
}

/**
 * What `init` does, in this order. Each step looks at what is there and does what is missing, so `init` can be run again
 * wherever an earlier run ended, and succeeds only if all is as it should be.
 */
export const setupSteps: readonly SetupStep[] = [
  { name: "files", run: writeOnMachine },
  { name: "image", run: buildMissingImage },
  { name: "network", run: makeNetwork },
  { name: "receive and run", run: (setup, env) => replace(setup, env, [receive, run, page]) },
  // All else is there before the ports change hands, so that the gap is short.
  { name: "ports", run: freePorts },
  { name: "caddy", run: (setup, env) => replace(setup, env, [caddy]) },
  { name: "inbox", run: (setup, env) => untilRight(setup, env, [receive, run], askInbox) },
  { name: "delivery", run: (setup, env) => untilRight(setup, env, [receive, caddy], askForPong) },
  { name: "site", run: (setup, env) => untilRight(setup, env, [run, caddy], askSite) },
];

const { caddy, receive, run, page } = machineServices;

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
  if (check) return await reportCheck(setup, env);
  if (!(await mayChange(filesOf(setup), yes))) return 1;
  printMachineNotes(setup);
  for (const step of setupSteps) await step.run(setup, env);
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

async function reportCheck(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<number> {
  const isImageThere = await hasNeededImage(setup, env);
  if (!isImageThere) print(`The image ${ownImage} would be built.`);
  const isRight = isImageThere && filesOf(setup).every(({ state }) => state === "right");
  const outdated = isRight ? await outdatedServices(setup, env) : [];
  if (outdated.length > 0) print(`Would be started: ${outdated.join(", ")}.`);
  return isRight && outdated.length === 0 ? 0 : 1;
}

async function buildMissingImage(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  if (!(await hasNeededImage(setup, env))) await buildOwnImage(env);
}

/** A machine part that is there keeps its image: `hotpush upgrade` replaces it. A new one runs these very sources. */
async function hasNeededImage(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { HOTPUSH_IMAGE = ownImage } = setup.place.env;
  if (HOTPUSH_IMAGE !== ownImage) return true;
  const containers = await listMachineContainers(machineOf(setup, env), run);
  return containers.length === 0 ? await hasOwnImage(env) : await hasImageOfVersion(env);
}

async function makeNetwork({ name }: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  await makeProjectNetwork(connectEngine(env.DOCKER_HOST), name);
}

/** Gives those of `services` a new container that do not run as the files say, or are not healthy. */
async function replace(
  setup: MachineSetup,
  env: NodeJS.ProcessEnv,
  services: readonly string[],
): Promise<void> {
  const machine = machineOf(setup, env);
  const outdated = (await outdatedServices(setup, env)).filter((one) => services.includes(one));
  if (outdated.length > 0) progress(`Starting ${outdated.join(", ")} in ${setup.place.files.path}.`);
  const failure = await startHeld(machine, outdated, "hotpush init", () =>
    progress("Waiting for the running deployments. No other starts meanwhile."),
  );
  if (failure === null) return;
  const { service, reason } = failure;
  throw new CommandError(
    `${service} in ${setup.place.files.path} does not start. Docker says:${indented(reason)}\n${whenFixed}`,
  );
}

async function outdatedServices(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const machine = machineOf(setup, env);
  const { composeFile } = machine.part.files;
  const composeText = setup.machineFiles.find(({ path }) => path === composeFile)?.text ?? "";
  const outdated = await findOutdated(machine, composeText, machine.part.env.HOTPUSH_IMAGE ?? ownImage);
  return outdated.includes(run) || !(await isOwnerNew(setup, env)) ? outdated : [...outdated, run];
}

/** A user that was added to the machine after `run` was started, and owns the checkout. */
async function isOwnerNew({ project }: MachineSetup, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { uid, gid } = statSync(project.root);
  return readUser(uid, gid).name !== null && !(await isUserKnown(uid, env));
}

/** The machine part as it is now: the plan was made before its files were written. */
function machineOf({ place }: MachineSetup, env: NodeJS.ProcessEnv): MachineServices {
  const { signal } = new AbortController();
  return { part: findMachinePart(env) ?? place, engine: connectEngine(env.DOCKER_HOST), env, signal };
}

/** Takes from the project's own containers the ports that Caddy gets. */
async function freePorts({ holders, project }: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  if (holders.length === 0) return;
  const names = holders.join(" and ");
  progress(
    `Recreating ${names} without ports of the machine, which Caddy takes over: a second or two without an answer.`,
  );
  const directory = ["--project-directory", project.root];
  const argv = ["docker", "compose", ...directory, "up", "--detach", "--no-deps", ...holders] as const;
  if ((await runInForeground([...argv], env)) === 0) return;
  throw new CommandError(`${names} could not be recreated, for the reason above. ${whenFixed}`);
}

/** @returns what is not right yet, or null */
type Ask = (setup: MachineSetup) => Promise<string | null>;

/** What was just started or written counts within a few seconds. */
const rightWithinMs = 15_000;
const [pauseMs, answerTimeoutMs, shownLines] = [200, 2_000, 10];

/** Asks until all is right. The last lines of `services` explain why it is not. */
async function untilRight(
  setup: MachineSetup,
  env: NodeJS.ProcessEnv,
  services: readonly string[],
  ask: Ask,
): Promise<void> {
  const deadlineMs = performance.now() + rightWithinMs;
  let fault = await ask(setup);
  while (fault !== null && performance.now() < deadlineMs) {
    await sleep(pauseMs);
    fault = await ask(setup);
  }
  if (fault === null) return;
  const machine = machineOf(setup, env);
  const containers = (await Promise.all(services.map((one) => listMachineContainers(machine, one)))).flat();
  const logs = await Promise.all(
    containers.map(async ({ id, name }) => [
      `${name}:`,
      ...(await lastLogLines(machine.engine, id, shownLines)),
    ]),
  );
  throw new CommandError(`${fault} Last log lines:${indented(logs.flat())}\n${whenFixed}`);
}

const whenFixed = "The files are written. When the cause is fixed, run this again.";

function indented(lines: readonly string[]): string {
  return lines.map((line) => `\n    ${line}`).join("");
}

async function askInbox({ place }: MachineSetup): Promise<string | null> {
  const status = await statusOf(place.state.run);
  if (status === null) return "run does not answer.";
  return status.health.detail;
}

/** A signed ping goes through Caddy to `receive`, which reads the files of projects every two seconds. */
async function askForPong({
  name,
  place,
  project,
  host,
  machineFiles,
}: MachineSetup): Promise<string | null> {
  const file = machineFiles.find(({ path }) => path === `${place.files.projectsPath}/${name}.env`);
  const url = new URL(`http://127.0.0.1:${place.ports.http}/webhook/${name}`);
  const { isGood, text } = await send({
    ...{ url, secret: secretToSend(parseEnv(file?.text ?? "")), server: place.files },
    ...{ directory: project.root, branch: project.branch, host },
    ...{ event: "ping", file: null, isDryRun: true, waitMs: 0 },
  });
  return isGood ? null : `A signed ping to ${url} failed. ${text}`;
}

/** `run` loads a new site into Caddy within two seconds. Until then Caddy answers 404 at any name that it does not know. */
async function askSite({ place, address }: MachineSetup): Promise<string | null> {
  const { hostname } = address.payloadUrl;
  if (isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) return null;
  const url = new URL(`http://127.0.0.1:${place.ports.http}/webhook`);
  const answer = await sendHttp(url, { headers: { host: hostname }, timeoutMs: answerTimeoutMs }).catch(
    () => null,
  );
  if (answer !== null && answer.status !== 404) return null;
  const faults = (await statusOf(place.state.run))?.machineFaults ?? [];
  return [`Caddy does not serve ${hostname}.`, ...faults].join(" ");
}

/** @returns null if `run` does not answer */
async function statusOf(statePath: string): Promise<WholeStatusJson | null> {
  try {
    return await callService<WholeStatusJson>(statePath, "GET", "/status");
  } catch (error) {
    if (error instanceof NotRunningError) return null;
    throw error;
  }
}

/** Caddy gets a certificate within seconds if it can get one. */
const pageWithinMs = 60_000;
const pageTimeoutMs = 10_000;
const signedOut = 401;
/** While Caddy changes its configuration, the one before still gets some requests. */
const answersInTurn = 3;

/**
 * Asks the page as a visitor of `url` does who is not signed in, but at Caddy of this machine: from inside, a name may lead
 * elsewhere.
 *
 * @throws CommandError with the cause if it does not answer within a minute, or Caddy gets no certificate
 */
async function untilPageAnswers(
  url: URL,
  { ports, files }: MachineSetup["place"],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const hasTls = hasOwnCertificate(url, { ports });
  const target = new URL(hasTls ? `https://127.0.0.1:${ports.https}` : `http://127.0.0.1:${ports.http}`);
  const request = { headers: { host: url.host }, timeoutMs: pageTimeoutMs, acceptsAnyCertificate: true };
  const deadlineMs = performance.now() + pageWithinMs;
  let goodAnswers = 0;
  for (;;) {
    const answer = await sendHttp(target, request).catch((error: NodeJS.ErrnoException) => error);
    goodAnswers = "status" in answer && answer.status === signedOut ? goodAnswers + 1 : 0;
    if (goodAnswers === answersInTurn) return;
    const refusal = hasTls && !("status" in answer) ? await certificateRefusal(url.hostname, env) : null;
    if (refusal !== null) {
      throw new CommandError(
        `The page is set up, but Caddy has no certificate for ${url.hostname}: ${refusal}\nIt needs a DNS record of ${url.hostname} with the address of this server, and ports 80 and 443 open to the internet. Caddy tries again by itself. To check: hotpush init --page ${url.origin}`,
      );
    }
    if (performance.now() > deadlineMs) {
      const said = "status" in answer ? `status ${answer.status}` : (answer.code ?? answer.message);
      throw new CommandError(
        `The page does not answer at ${url.origin} (${said}). Its log and Caddy's may say why: ${serverCommands(files).logsOf("page", "caddy")}`,
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
  await runCommand({ argv, env, timeoutMs: pageTimeoutMs, onLine });
  return reason;
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Says what a person still has to do: only what is not done yet. */
async function printEnd(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  const { project, host, address, place, name, machineFiles, plan } = setup;
  const secretFile = `${place.files.projectsPath}/${name}.env`;
  const settings = parseEnv(machineFiles.find(({ path }) => path === secretFile)?.text ?? "");
  const { payloadUrl } = address;
  const secret = settings.WEBHOOK_SECRET ?? null;
  printWebhookForm({ host, remote: project.remote, payloadUrl, secret, secretFile });
  const published = plan.upstreams.map(({ service }) => service);
  const isUp = await isProjectUp({ name, root: project.root, published }, env);
  const result = isUp
    ? await dryRun({ project, payloadUrl, host, settings: { ...settings, ...env }, server: place.files })
    : null;
  if (result !== null) print(`\n${wrapFor(process.stdout, result)}`);
  else print("\nNext:", ...(isUp ? [] : ["  docker compose up -d"]), "  hotpush send --dry-run");
  if (setup.page !== null) print("", `The page is at ${setup.page.origin}. To sign in: hotpush open`);
  else if (place.isNew)
    print("", "For a page that shows all this: hotpush init --page https://<another name of this server>");
}
