import { statSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv } from "node:util";
import { callRun, NotRunningError } from "#calls/client";
import type { StatusJson, WholeStatusJson } from "#calls/shapes";
import { serverServices } from "#config/server";
import type { Environment } from "#config/settings";
import { connectEngine } from "#platform/docker/engine";
import { lastLogLines } from "#platform/docker/health";
import { sendHttp } from "#platform/http";
import { runInForeground } from "#platform/run-command";
import { readUser } from "#platform/users";
import { CommandError } from "#problems";
import { secretToSend, send } from "#send/send";
import { chooseOverrideFile, type OverrideFile, overrideText, planCheckoutFiles } from "./checkout-files.ts";
import { makeProjectNetwork } from "./networks.ts";
import {
  makeDirectory,
  type PlannedDirectory,
  type PlannedFile,
  planFile,
  readIfThere,
  writePlanned,
} from "./planned-file.ts";
import {
  chooseProjectName,
  findProject,
  findProjectAddress,
  type ProjectAddress,
  parsePublicUrl,
  projectFile,
  readServices,
  type SetupProject,
} from "./project.ts";
import { findRemovedProject, formerProjectName } from "./remove.ts";
import { askPublishedPorts, type GivenPlace, type ServedOptions, type ServedPlan } from "./served.ts";
import { notesOf, type ServedQuestion, settleServed } from "./served-questions.ts";
import {
  findMachine,
  findPortHolders,
  findServer,
  findServerPlace,
  isProjectUp,
  isUserKnown,
  listServerProjects,
  type Server,
  type ServerPlace,
} from "./server.ts";
import { frontOwner, serverDirectories, serverWideFiles } from "./server-files.ts";
import { hasOwnCertificate, placesIn, planPage, portsOfOthers, refuseTakenNames, siteFile } from "./sites.ts";
import {
  buildOwnImage,
  findOutdated,
  hasImageOfVersion,
  hasOwnImage,
  listServerContainers,
  ownImage,
  type ServerContext,
  startHeld,
} from "./start.ts";
import { type GitHost, isGitHost } from "./webhook-form.ts";

/** What the command line gives. */
export interface InitOptions {
  /** Where the git host reaches the project. */
  readonly url?: URL;
  readonly host?: GitHost;
  /** The name of the project. */
  readonly project?: string;
  /** The addresses of services. */
  readonly at?: readonly GivenPlace[];
  /** Where people reach the page. */
  readonly page?: URL;
  readonly yes?: boolean;
  readonly check?: boolean;
}

/** Asks what only a person can know, each only if it was not found. Null is no answer. */
export interface Questions {
  readonly askUrl: () => Promise<URL | null>;
  readonly askHost: (hostname: string) => Promise<GitHost | null>;
  /** null: no question about the services is asked, and the proposals are taken. */
  readonly askServed: ((question: ServedQuestion) => Promise<ServedOptions>) | null;
}

/** What a person sees of it. */
export interface Screen extends Questions {
  readonly showPlan: (setup: Setup) => Promise<void>;
  /** What would be built and started. */
  readonly showMissing: (image: string | null, services: readonly string[]) => void;
  /** Whether the person agrees to the changes of their files. */
  readonly mayChange: (files: readonly PlannedFile[]) => Promise<boolean>;
  readonly showNotes: (setup: Setup) => void;
  /** @param answer what the service said to a test push; null: it was not sent, or nobody answered */
  readonly showEnd: (setup: Setup, end: { readonly isUp: boolean; readonly answer: string | null }) => void;
}

/** A project as it is set up, and the files that it and the server should have. */
export interface Setup {
  readonly project: SetupProject;
  /** Of the project on the server. */
  readonly name: string;
  readonly place: ServerPlace;
  readonly plan: ServedPlan;
  /** What a person should know of it. */
  readonly notes: readonly string[];
  readonly address: ProjectAddress;
  /** Where people reach the page; null: there is none. */
  readonly page: URL | null;
  readonly host: GitHost | null;
  readonly override: OverrideFile;
  readonly directories: readonly PlannedDirectory[];
  /** The services of this project that have ports of the server until Caddy takes them over. */
  readonly holders: readonly string[];
  readonly serverFiles: readonly PlannedFile[];
  readonly checkoutFiles: readonly PlannedFile[];
  /** The project's own settings, with its secret, and the file that they are in. */
  readonly settings: Environment;
  readonly settingsFile: string;
}

/** A step of setting up a project. */
export interface SetupStep {
  readonly name: string;
  /** @throws CommandError if it cannot be done, with the cause */
  readonly run: (setup: Setup, env: NodeJS.ProcessEnv) => void | Promise<void>;
}

const { caddy, front, run } = serverServices;

/**
 * What is written, started and asked, in this order. Each step looks at what is there and does what is missing, so `init` can
 * be run again wherever an earlier run ended, and succeeds only if all is as it should be.
 */
export const setupSteps: readonly SetupStep[] = [
  { name: "files", run: writeFiles },
  { name: "image", run: buildMissingImage },
  { name: "network", run: ({ name }, env) => makeProjectNetwork(connectEngine(env.DOCKER_HOST), name) },
  { name: "front and run", run: (setup, env) => replace(setup, env, [run, front]) },
  // All else is there before the ports change hands, so that the gap is short.
  { name: "ports", run: freePorts },
  { name: "caddy", run: (setup, env) => replace(setup, env, [caddy]) },
  { name: "health", run: (setup, env) => untilRight(setup, env, [front, run], askHealth) },
  { name: "delivery", run: (setup, env) => untilRight(setup, env, [front, caddy], askForPong) },
  { name: "site", run: (setup, env) => untilRight(setup, env, [run, caddy], askSite) },
];

/**
 * Sets up the project around the working directory, and at the first time the server, so that a push deploys it.
 *
 * @returns the exit code: 1 if the person did not agree, or `check` found something that is not right
 * @throws CommandError if the project cannot be set up as it is
 */
export async function init(options: InitOptions, env: NodeJS.ProcessEnv, screen: Screen): Promise<number> {
  const setup = await planSetup(options, env, screen);
  await screen.showPlan(setup);
  screen.showNotes(setup);
  if (options.check) return await check(setup, env, screen);
  if (!(await screen.mayChange(filesOf(setup)))) return 1;
  for (const step of setupSteps) await step.run(setup, env);
  if (options.page) await untilRight(setup, env, [front, caddy], askPage, pageWithinMs);
  screen.showEnd(setup, await tryPush(setup, env));
  return 0;
}

/** Finds what is here, asks for the rest, and plans the files. Nothing is written or started. */
async function planSetup(given: InitOptions, env: NodeJS.ProcessEnv, ask: Questions): Promise<Setup> {
  const server = findServer(env);
  const project = await findProject(process.cwd(), (root) => server && settingsOf(server, root));
  const services = await readServices(project, env);
  const place = await findServerPlace(env);
  const name = nameOf(project, place, given);
  const known = settingsOf(place, project.root) ?? {};
  const formerUrl = known.WEBHOOK_URL ? parsePublicUrl(known.WEBHOOK_URL) : null;

  const address = findProjectAddress(given.url ?? formerUrl ?? (await ask.askUrl()), name, place.ports);
  const host = given.host ?? (await findHost(project, known, ask));
  const override = await chooseOverrideFile(project);
  const { sitesPath } = place.files;
  const formerPlaces = placesIn(
    readIfThere(join(sitesPath, `${name}.caddy`)) ?? "",
    findProjectAddress(formerUrl, name, place.ports).name,
    address.name,
  );
  const { plan, options } = await settleServed(
    services,
    {
      project: name,
      name: address.name,
      // Those of the command line count more.
      places: [...formerPlaces, ...(given.at ?? [])],
      isCaddyPublic: place.ports.http === 80 && place.ports.https === 443,
      takenPorts: [place.ports.http, place.ports.https, ...portsOfOthers(sitesPath, name)],
      answers: await askPublishedPorts(services),
    },
    ask.askServed,
  );

  refuseTakenNames(sitesPath, name, plan, { name: address.name, page: given.page ?? null });
  const pagePlan = given.page ? planPage(given.page, place) : null;
  const ownPorts = plan.upstreams.flatMap((one) => (one.place.kind === "port" ? [one.place] : []));
  const wide = {
    place,
    project,
    machine: findMachine(env),
    ports: ownPorts,
    settings: pagePlan?.settings ?? [],
  };
  const ofProject = { name, project, known, payloadUrl: address.payloadUrl, host };
  const choices = { url: given.url ?? null, host: given.host ?? null };
  const serverFiles = [
    ...serverWideFiles(wide),
    ...(pagePlan === null ? [] : [pagePlan.site]),
    projectFile({ ...ofProject, given: choices, gid: frontOwner(place).gid }),
    siteFile(plan, { project: name, ...address }),
  ].map((file) => planFile(place.files.path, file));
  const settingsFile = join(place.files.projectsPath, `${name}.env`);
  const caddyPorts = [place.ports.http, place.ports.https, ...ownPorts.map(({ port }) => port)];
  const { PAGE_URL } = place.env;
  return {
    project,
    name,
    place,
    plan,
    address,
    host,
    override,
    serverFiles,
    settingsFile,
    notes: [...notesOf(services, options, plan), ...removedNotes(place, project.root)],
    directories: serverDirectories(wide),
    holders: await findPortHolders(project.root, caddyPorts, env),
    page: pagePlan?.url ?? (PAGE_URL && URL.canParse(PAGE_URL) ? new URL(PAGE_URL) : null),
    checkoutFiles: await planCheckoutFiles(project, override, overrideText(name, plan.changes)),
    settings: parseEnv(serverFiles.find(({ path }) => path === settingsFile)?.text ?? ""),
  };
}

/** The settings of the project in the checkout `root`, if the server has it, or had it before it was removed. */
function settingsOf(server: Server, root: string): Environment | null {
  const present = listServerProjects(server).find(({ env }) => env.REPO_PATH === root);
  return (present ?? findRemovedProject(server, root))?.env ?? null;
}

/** Its address and its secret are taken over. */
function removedNotes(server: Server, root: string): readonly string[] {
  const removed = findRemovedProject(server, root);
  if (removed === null || listServerProjects(server).some(({ env }) => env.REPO_PATH === root)) return [];
  const secrets = join(server.files.secretsPath, `${removed.name}.env`);
  return [
    `This project was removed from the server before, and gets its webhook secret back. Its other settings are in ${removed.file}. If deploy.sh had secrets of its own, move them back to ${secrets}.`,
  ];
}

function nameOf({ root, remote }: SetupProject, place: ServerPlace, given: InitOptions): string {
  const projects = listServerProjects(place);
  const others = projects.filter(({ env }) => env.REPO_PATH !== root);
  return chooseProjectName({
    path: remote?.path ?? root,
    given: given.project ?? formerProjectName(place, root),
    known: projects.find(({ env }) => env.REPO_PATH === root)?.name ?? null,
    others: new Map(others.map(({ name, env }) => [name, env.REPO_PATH ?? ""])),
  });
}

async function findHost(
  { host, remote }: SetupProject,
  { HOTPUSH_GIT_HOST: known }: Environment,
  { askHost }: Questions,
): Promise<GitHost | null> {
  if (known && isGitHost(known)) return known;
  return host ?? (remote === null ? null : await askHost(remote.hostname));
}

function filesOf({ serverFiles, checkoutFiles }: Setup): readonly PlannedFile[] {
  return [...serverFiles, ...checkoutFiles];
}

async function check(setup: Setup, env: NodeJS.ProcessEnv, { showMissing }: Screen): Promise<number> {
  const isImageThere = await hasNeededImage(setup, env);
  const isRight = isImageThere && filesOf(setup).every(({ state }) => state === "right");
  const outdated = isRight ? await outdatedServices(setup, env) : [];
  showMissing(isImageThere ? null : ownImage, outdated);
  return isRight && outdated.length === 0 ? 0 : 1;
}

function writeFiles(setup: Setup): void {
  for (const directory of setup.directories) makeDirectory(directory);
  for (const file of filesOf(setup)) writePlanned(file);
}

async function buildMissingImage(setup: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  if (!(await hasNeededImage(setup, env))) await buildOwnImage(env);
}

/** A server that is there keeps its image: `hotpush upgrade` replaces it. A new one runs these very sources. */
async function hasNeededImage(setup: Setup, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { HOTPUSH_IMAGE = ownImage } = setup.place.env;
  if (HOTPUSH_IMAGE !== ownImage) return true;
  const containers = await listServerContainers(servicesOf(setup, env), run);
  return containers.length === 0 ? await hasOwnImage(env) : await hasImageOfVersion(env);
}

/** The server as it is now: the plan was made before its files were written. */
function servicesOf({ place }: Setup, env: NodeJS.ProcessEnv): ServerContext {
  const { signal } = new AbortController();
  return { server: findServer(env) ?? place, engine: connectEngine(env.DOCKER_HOST), env, signal };
}

/** Gives those of `services` a new container that do not run as the files say, or are not healthy. */
async function replace(setup: Setup, env: NodeJS.ProcessEnv, services: readonly string[]): Promise<void> {
  const outdated = (await outdatedServices(setup, env)).filter((one) => services.includes(one));
  if (outdated.length > 0) progress(`Starting ${outdated.join(", ")} in ${setup.place.files.path}.`);
  const failure = await startHeld(servicesOf(setup, env), outdated, "hotpush init", () =>
    progress("Waiting for the running deployments. No other starts meanwhile."),
  );
  if (failure === null) return;
  const { service, reason } = failure;
  throw new CommandError(
    `${service} in ${setup.place.files.path} does not start. Docker says:${indented(reason)}\n${whenFixed}`,
  );
}

async function outdatedServices(setup: Setup, env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const services = servicesOf(setup, env);
  const { composeFile } = services.server.files;
  const composeText = setup.serverFiles.find(({ path }) => path === composeFile)?.text ?? "";
  const image = services.server.env.HOTPUSH_IMAGE ?? ownImage;
  const outdated = await findOutdated(services, composeText, image);
  // A user that was added to the system after `run` was started, and owns the checkout.
  const { uid, gid } = statSync(setup.project.root);
  const isOwnerNew = readUser(uid, gid).name !== null && !(await isUserKnown(uid, env));
  return isOwnerNew && !outdated.includes(run) ? [...outdated, run] : outdated;
}

/** Takes from the project's own containers the ports that Caddy gets. */
async function freePorts({ holders, project }: Setup, env: NodeJS.ProcessEnv): Promise<void> {
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

const whenFixed = "The files are written. When the cause is fixed, run this again.";

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `\n    ${line}`).join("");
}

/** What was just started or written counts within a few seconds. */
const rightWithinMs = 15_000;
const pauseMs = 200;
const answerTimeoutMs = 2_000;
const shownLines = 10;

/**
 * Asks until all is right. The last lines of `services` explain why it is not.
 *
 * @param ask gives what is not right yet, or null
 */
async function untilRight(
  setup: Setup,
  env: NodeJS.ProcessEnv,
  services: readonly string[],
  ask: (setup: Setup) => Promise<string | null>,
  withinMs = rightWithinMs,
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  let fault = await ask(setup);
  while (fault !== null && performance.now() < deadlineMs) {
    await sleep(pauseMs);
    fault = await ask(setup);
  }
  if (fault === null) return;
  const server = servicesOf(setup, env);
  const containers = (await Promise.all(services.map((one) => listServerContainers(server, one)))).flat();
  const logs = await Promise.all(
    containers.map(async ({ id, name }) => [
      `${name}:`,
      ...(await lastLogLines(server.engine, id, shownLines)),
    ]),
  );
  throw new CommandError(`${fault} Last log lines:${indented(logs.flat())}\n${whenFixed}`);
}

async function askHealth({ place }: Setup): Promise<string | null> {
  const status = await statusOf(place);
  return status === null ? "run does not answer." : status.health.detail;
}

/** A signed ping goes through Caddy to `front`, which reads the files of projects every two seconds. */
async function askForPong({ name, place, project, host, settings }: Setup): Promise<string | null> {
  const url = new URL(`http://127.0.0.1:${place.ports.http}/webhook/${name}`);
  const { isGood, text } = await send({
    url,
    secret: secretToSend(settings),
    server: place.files,
    directory: project.root,
    branch: project.branch,
    host,
    event: "ping",
    isDryRun: true,
    waitMs: 0,
  });
  return isGood ? null : `A signed ping to ${url} failed. ${text}`;
}

/** `run` loads a new site into Caddy within two seconds. Until then Caddy answers 404 at any name that it does not know. */
async function askSite({ place, address }: Setup): Promise<string | null> {
  const { hostname } = address.payloadUrl;
  if (isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) return null;
  const url = new URL(`http://127.0.0.1:${place.ports.http}/webhook`);
  const request = { headers: { host: hostname }, timeoutMs: answerTimeoutMs };
  const answer = await sendHttp(url, request).catch(() => null);
  if (answer !== null && answer.status !== 404) return null;
  const faults = (await statusOf(place))?.serverFaults ?? [];
  return [`Caddy does not serve ${hostname}.`, ...faults].join(" ");
}

/** @returns null if `run` does not answer */
async function statusOf({ state }: ServerPlace): Promise<StatusJson | WholeStatusJson | null> {
  try {
    return await callRun(state.run, "status", {});
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
 * Asks the page as a visitor does who is not signed in, but at Caddy of this server: from inside, a name may lead elsewhere.
 */
async function askPage({ page: url, place }: Setup): Promise<string | null> {
  if (url === null) return null;
  const hasTls = hasOwnCertificate(url, place);
  const { http, https } = place.ports;
  const target = new URL(hasTls ? `https://127.0.0.1:${https}` : `http://127.0.0.1:${http}`);
  const request = { headers: { host: url.host }, timeoutMs: pageTimeoutMs, acceptsAnyCertificate: true };
  for (let good = 0; good < answersInTurn; good += 1) {
    const answer = await sendHttp(target, request).catch((error: NodeJS.ErrnoException) => error);
    if ("status" in answer && answer.status === signedOut) continue;
    const said = "status" in answer ? `status ${answer.status}` : (answer.code ?? answer.message);
    const needs = `A certificate needs a DNS record of ${url.hostname} with the address of this server, and ports 80 and 443 open to the internet.`;
    return `The page does not answer at ${url.origin} (${said}).${hasTls ? ` ${needs}` : ""}`;
  }
  return null;
}

/** Sends a test push that changes nothing, if the project runs. */
async function tryPush(
  { project, name, plan, address, host, settings, place }: Setup,
  env: NodeJS.ProcessEnv,
) {
  const published = plan.upstreams.map(({ endpoint }) => endpoint.service);
  const isUp = await isProjectUp({ name, root: project.root, published }, env);
  if (!isUp) return { isUp, answer: null };
  try {
    const { outcome, text } = await send({
      url: address.payloadUrl,
      secret: secretToSend({ ...settings, ...env }),
      server: place.files,
      directory: project.root,
      branch: project.branch,
      host,
      event: "push",
      isDryRun: true,
      waitMs: 0,
    });
    return { isUp, answer: outcome === "unreachable" || outcome === "not-hotpush" ? null : text };
  } catch {
    // Without a secret or a commit there is nothing to send.
    return { isUp, answer: null };
  }
}
