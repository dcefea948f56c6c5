import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callRun } from "#calls/client";
import { type GitHost, gitHostOf, isGitHost } from "#config/git-hosts";
import { projectNetwork, serverComposeProject, serverServices } from "#config/server";
import { branches, type Environment } from "#config/settings";
import { webhookUrl } from "#config/values";
import { checkInRun, unmountedFault } from "#doctor/in-run";
import { untilRight } from "#platform/async";
import { listContainers } from "#platform/docker/containers";
import { connectEngine } from "#platform/docker/engine";
import { lastLogLines } from "#platform/docker/health";
import { parseEnvFile } from "#platform/env-file";
import { deployKeyPath, lookAt } from "#platform/git";
import { sendHttp } from "#platform/http";
import { hasSucceeded, runInForeground } from "#platform/run-command";
import { CommandError } from "#problems";
import { ping, secretToSend } from "#send/send";
import { findExposedFiles } from "./build-context.ts";
import { hasLostDeployKey, moveDeployKey } from "./clone.ts";
import {
  findPortHolders,
  findServerPlace,
  hasOldFiles,
  refuseLocalRemote,
  type ServerPlace,
} from "./machine.ts";
import { chooseComposeName, compareStarted } from "./neighbors.ts";
import { renewProjectNetwork } from "./networks.ts";
import { addressesOf } from "./outside.ts";
import { makeDirectory, planFile, readIfThere, writePlanned } from "./planned-file.ts";
import {
  chooseProjectName,
  findProject,
  git,
  overrideText,
  planCheckoutFiles,
  projectFile,
  readModel,
  readRemoteBranch,
} from "./project.ts";
import { listRemovedProjects } from "./remove.ts";
import { askPublishedPorts, chooseServed, type GivenPlace, notesOf, type ServedQuestion } from "./served.ts";
import { findServer, listServerProjects, type ServerProject } from "./server.ts";
import { frontOwner, hostsLeft, serverDirectories, serverWideFiles } from "./server-files.ts";
import {
  hasOwnCertificate,
  placesIn,
  planPage,
  projectSite,
  refuseOldCaddyfile,
  refuseTakenNames,
} from "./sites.ts";
import {
  buildOwnImage,
  findOutdated,
  findOwnImage,
  holdDeployments,
  ownImage,
  type ServerContext,
  startServices,
} from "./start.ts";
import { payloadName } from "./webhook-form.ts";

/** What the command line gives. */
export interface InitOptions {
  /** Where the git host reaches the project. */
  readonly url?: URL;
  /** The path of the payload URL. */
  readonly webhookPath?: string;
  readonly host?: GitHost;
  /** The name of the project. */
  readonly project?: string;
  /** The addresses of services. */
  readonly at?: readonly GivenPlace[];
  /** Where people reach the page. */
  readonly page?: URL;
}

/** Asks what only a person can know, each only if it was not found. Null is no answer. */
export interface Questions {
  readonly askUrl: () => Promise<URL | null>;
  /** null: no question about the services is asked, and the proposals are taken. */
  readonly askServed: ((question: ServedQuestion) => Promise<GivenPlace>) | null;
}

/** A project as it is set up, and the files that it and the server should have. */
export type Setup = Awaited<ReturnType<typeof planSetup>>;

/** Its title, and what it does. It throws a CommandError if that cannot be done, with the cause. */
type Step = readonly [string, (setup: Setup, env: NodeJS.ProcessEnv) => void | Promise<void>];

const { caddy, front, run } = serverServices;

/**
 * What is written, started and asked, in this order. Each step looks at what is there and does what is missing, so `init` can
 * be run again wherever an earlier run ended, and succeeds only if all is as it should be.
 */
export const setupSteps: readonly Step[] = [
  ["files", writeFiles],
  ["image", buildMissingImage],
  ["network", renewNetwork],
  ["front and run", (setup, env) => replace(setup, env, [run, front])],
  ["checks in run", checkProject],
  // All else is there before the ports change hands, so that the gap is short.
  ["ports", freePorts],
  ["caddy", (setup, env) => replace(setup, env, [caddy])],
  ["delivery", (setup, env) => requireRight(setup, env, [front, caddy], askForPong)],
  ["site", (setup, env) => requireRight(setup, env, [run, caddy], askSite)],
  ["page", (setup, env) => requireRight(setup, env, [front, caddy], askPage, pageWithinMs)],
];

/**
 * Finds what is around the working directory, asks for the rest, and plans the files. Nothing is written or started.
 *
 * @throws CommandError if the project cannot be set up as it is
 */
export async function planSetup(given: InitOptions, env: NodeJS.ProcessEnv, ask: Questions) {
  const project = await findProject(process.cwd());
  const { root, remote } = project;
  refuseLocalRemote(project);
  const model = await readModel(project, env);
  const { services } = model;
  const place = await findServerPlace(env);

  const projects = listServerProjects(place);
  const present = projects.find((one) => one.env.REPO_PATH === root);
  const allRemoved = listRemovedProjects(place);
  const removed = (!present && allRemoved.find((one) => one.env.REPO_PATH === root)) || null;
  const known = (present ?? removed)?.env ?? {};
  const isOther = ({ env: { REPO_PATH } }: ServerProject) => REPO_PATH !== root;
  const others = [
    ...allRemoved.filter(isOther).map(({ name, env: { REPO_PATH }, file }) => {
      const kept = `${REPO_PATH}, which was removed. Its history has the name; to take both over: rm ${file}`;
      return [name, kept] as const;
    }),
    ...projects.filter(isOther).map(({ name, env: { REPO_PATH = "" } }) => [name, REPO_PATH] as const),
  ];
  const name = chooseProjectName({
    path: remote?.path ?? root,
    given: given.project ?? null,
    former: removed?.name ?? null,
    known: present?.name ?? null,
    others: new Map(others),
  });
  const branch = await readRemoteBranch(root, branches.find((one) => one === known.BRANCH) ?? null);
  const composeName = await chooseComposeName(project, model, name, env);
  const startedNotes = await compareStarted(project, model, env);
  const { WEBHOOK_URL: addressBefore, HOTPUSH_GIT_HOST: hostBefore = "" } = known;
  const urlBefore = webhookUrl(addressBefore ?? "");
  const newUrl = given.url ?? (urlBefore === null ? await ask.askUrl() : null);
  const address = newUrl ?? urlBefore;
  if (address === null)
    throw new CommandError(
      "Say where your git host and your visitors reach this project: hotpush init --url https://shop.example.org",
    );
  const payloadUrl = new URL(address);
  payloadUrl.pathname = given.webhookPath ?? urlBefore?.pathname ?? payloadUrl.pathname;
  if (newUrl !== null) await refuseUnreachable(payloadUrl, place);
  const { hostname } = payloadUrl;
  const host = given.host ?? (isGitHost(hostBefore) ? hostBefore : remote && gitHostOf(remote));

  const { sitesPath, projectsPath } = place.files;
  const siteBefore = readIfThere(join(sitesPath, `${name}.caddy`)) ?? "";
  const placesBefore = placesIn(siteBefore, urlBefore?.hostname ?? hostname, hostname);
  const caddyPorts = Object.values(place.ports);
  const twice = given.at?.find(({ service, port }, index, all) =>
    all.some((one, other) => other < index && one.service === service && one.port === port),
  );
  if (twice !== undefined)
    throw new CommandError(
      `--at gives ${twice.service} one host name. A second one (www) goes below the sites in ${join(sitesPath, `${name}.caddy`)}, where init leaves it:\n${payloadUrl.protocol === "http:" ? "http://" : ""}${twice.host} {\n\tredir ${payloadUrl.origin}{uri}\n}`,
    );
  const options = {
    name: hostname,
    // Those of the command line count more.
    places: [...placesBefore.filter(({ service }) => Object.hasOwn(services, service)), ...(given.at ?? [])],
    caddyPorts,
    answers: await askPublishedPorts(services),
  };
  const plan = await chooseServed(services, options, ask.askServed);
  const newPage = given.page ?? null;
  refuseTakenNames(sitesPath, name, plan, { name: hostname, page: newPage });

  const page = newPage && planPage(newPage, place);
  const serverFiles = [
    ...serverWideFiles(place, project, page ? [page.setting] : []),
    ...(page === null ? [] : [page.site]),
    projectFile({ name, project, branch, known, host, given, payloadUrl, gid: frontOwner(place).gid }),
    projectSite(plan, name, payloadUrl, place, given.webhookPath !== undefined),
  ].map((file) => planFile(place.files.path, file));
  refuseOldCaddyfile(serverFiles);
  const settingsFile = join(projectsPath, `${name}.env`);
  const notes = [...notesOf(services, hostname, plan), ...startedNotes];
  if (removed !== null)
    notes.push(
      `This project was removed from the server before, and gets its webhook secret back. Its other settings are in ${removed.file}. If deploy.sh had secrets of its own, move them back to ${join(place.files.secretsPath, `${removed.name}.env`)}.`,
    );
  const { REPOSITORY: only } = known;
  if (only && remote && payloadName(remote.path, host).toLowerCase() !== only.toLowerCase())
    notes.push(
      `Only pushes of ${only} are deployed, and the remote is ${remote.path}. If the repository has moved, remove the line REPOSITORY from ${settingsFile}.`,
    );
  const changed = await lookAt(root, ["diff", "--name-only", "--ignore-submodules", "HEAD"], { env });
  const edited = hasSucceeded(changed) ? changed.output.trim().split("\n").filter(Boolean) : [];
  if (edited.length > 0)
    notes.push(
      `What is edited here and not committed is discarded by the first deployment: ${edited.slice(0, 5).join(", ")}. Commit and push what should stay.`,
    );
  const left = remote && hostsLeft(place, remote.hostname);
  if (left)
    notes.push(
      `In \`run\`, ${remote.hostname} is at ${left}, and /etc/hosts of this machine does not say so any more. If it is elsewhere now, remove the name from extra_hosts in ${place.files.composeFile} and run this again.`,
    );
  notes.push(...findExposedFiles(services).map(({ text, command }) => `${text} For example: ${command}`));
  if (composeName !== null)
    notes.push(
      `Another checkout has the compose project ${model.name}, so this one gets a name of its own, in .env: ${composeName}. If it was started before as ${model.name}, its volumes have that name and are not used any more.`,
    );
  const { PAGE_URL } = place.env;
  return {
    project,
    /** Of the project on the server. */
    name,
    place,
    /** Where the git host and visitors reach it. */
    payloadUrl,
    host,
    serverFiles,
    checkoutFiles: await planCheckoutFiles(project, overrideText(name, plan.changes), composeName),
    directories: serverDirectories(place),
    /** The project's own settings, with its secret, and the file that they are in. */
    settings: parseEnvFile(serverFiles.find(({ path }) => path === settingsFile)?.text ?? "") as Environment,
    settingsFile,
    /** What a person should know of it. */
    notes,
    /** Catch-up may deploy it at once. */
    hasHistory: removed !== null,
    /** The services of this project that have ports of the server until Caddy takes them over. */
    holders: await findPortHolders(root, caddyPorts, env),
    /** Where people reach the page, from now on or as before; null: there is none. */
    newPage,
    page: newPage ?? (PAGE_URL && URL.canParse(PAGE_URL) ? new URL(PAGE_URL) : null),
  };
}

/** @throws CommandError if Caddy can get no request to `url`, whatever is done outside of this machine */
async function refuseUnreachable(url: URL, { ports }: ServerPlace): Promise<void> {
  const { protocol, hostname, port, origin } = url;
  // With other ports, a proxy in front of Caddy has the port of the address.
  if (port !== "" && ports.http === 80 && ports.https === 443)
    throw new CommandError(
      `Nothing would answer at ${origin}: Caddy has ports 80 and 443. Run: hotpush init --url ${protocol}//${hostname}. To keep a proxy of yours in front: HTTP_PORT=8080 HTTPS_PORT=8443 hotpush init --url ${origin}`,
    );
  if (/[.:]|^localhost$/.test(hostname) || (await addressesOf(hostname)).length > 0) return;
  throw new CommandError(
    `${hostname} leads nowhere. Give the full name: hotpush init --url ${protocol}//${hostname}.example.org`,
  );
}

/** Makes it so. @throws CommandError if a step fails, with the cause */
export async function applySetup(setup: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  for (const [, act] of setupSteps) await act(setup, env);
}

async function writeFiles(setup: Setup): Promise<void> {
  for (const directory of setup.directories) makeDirectory(directory);
  for (const file of [...setup.serverFiles, ...setup.checkoutFiles]) writePlanned(file);
  const { root } = setup.project;
  await moveDeployKey(root);
  if (await hasLostDeployKey(root))
    progress(
      `${deployKeyPath(root)} leads to a deploy key that the owner of the checkout cannot read. For a new one: hotpush connect`,
    );
}

async function renewNetwork({ name }: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  if (await renewProjectNetwork(connectEngine(env.DOCKER_HOST), name)) return;
  progress(
    `The network ${projectNetwork(name)} is of an earlier version: it gives your services a way out, also those with internal networks only. To change that: docker compose down && hotpush init && docker compose up -d`,
  );
}

/** A server that is there keeps its image: `hotpush upgrade` replaces it. A new one runs these very sources. */
async function buildMissingImage(setup: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  const { HOTPUSH_IMAGE = ownImage } = setup.place.env;
  if (HOTPUSH_IMAGE !== ownImage) return;
  const present = await listContainers(servicesOf(setup, env).engine, serverComposeProject, run);
  const image = await findOwnImage(env);
  if (image === null || (present.length === 0 && !image.isOfTheseSources)) await buildOwnImage(env);
}

/** The server as it is now: the plan was made before its files were written. */
function servicesOf({ place }: Setup, env: NodeJS.ProcessEnv): ServerContext {
  return { server: findServer(env) ?? place, engine: connectEngine(env.DOCKER_HOST), env };
}

/** Gives those of `services` a new container that do not run as the files say, or are not healthy. */
async function replace(setup: Setup, env: NodeJS.ProcessEnv, services: readonly string[]): Promise<void> {
  const context = servicesOf(setup, env);
  const isBehind = await hasOldFiles(context.engine, env);
  const all = new Set([...(await findOutdated(context)), ...(isBehind ? [run] : [])]);
  const outdated = services.filter((one) => all.has(one));
  if (outdated.length > 0) progress(`Starting ${outdated.join(", ")} in ${setup.place.files.path}.`);
  const onWaiting = () => progress("Waiting for the running deployments. No other starts meanwhile.");
  const needsHold = outdated.includes(run) || outdated.includes(caddy);
  const release = needsHold ? await holdDeployments(context, "hotpush init", onWaiting) : null;
  const failure = await startServices(context, outdated).finally(() => release?.());
  if (failure === null) return;
  const { service, reason } = failure;
  throw new CommandError(
    `${service} in ${setup.place.files.path} does not start. Docker says:${indented(reason)}\n${whenFixed}`,
  );
}

/**
 * Has `run` ask the remote and read the compose file. What it cannot do and this machine can would keep every push from being
 * deployed. All else is printed: a key or a token may come next, by `hotpush connect`, or a secret of the script.
 */
async function checkProject({ name, project }: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  const found = await checkInRun(name, ["remote", "docker", "compose"], env);
  if (found === null) progress("`run` cannot be asked about this project. To look again: hotpush doctor");
  for (const [id, { faults }] of found ?? []) {
    const unmounted = unmountedFault(faults);
    const fault = unmounted ?? faults.find(({ severity }) => severity === "problem");
    if (fault === undefined) continue;
    const lines = indented([fault.text, fault.command ?? fault.change ?? ""].filter(Boolean));
    const isReadHere = async () => (await git(project.root, "ls-remote", "--", "origin", "HEAD")) !== null;
    if (unmounted || (id === "remote" && fault.command === null && (await isReadHere())))
      throw new CommandError(`In the container of \`run\`, where deploy.sh runs:${lines}\n${whenFixed}`);
    progress(`Pushes may not be deployed yet:${lines}\nTo look again: hotpush doctor ${id}`);
  }
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

/** What was just started or written counts within a few seconds, on a slow machine within half a minute. */
const rightWithinMs = 30_000;
const pauseMs = 200;
const shownLines = 10;

/**
 * Asks until all is right. The last lines of `services` explain why it is not.
 *
 * @param ask gives what is not right yet, or null
 */
async function requireRight(
  setup: Setup,
  env: NodeJS.ProcessEnv,
  services: readonly string[],
  ask: (setup: Setup) => Promise<string | null>,
  withinMs = rightWithinMs,
): Promise<void> {
  const fault = await untilRight(() => ask(setup), { withinMs, pauseMs });
  if (fault === null) return;
  const { engine } = servicesOf(setup, env);
  const all = await listContainers(engine, serverComposeProject);
  const containers = all.filter(({ service }) => services.includes(service));
  const logs = await Promise.all(
    containers.map(async ({ id, name }) => [`${name}:`, ...(await lastLogLines(engine, id, shownLines))]),
  );
  throw new CommandError(`${fault} Last log lines:${indented(logs.flat())}\n${whenFixed}`);
}

/** A signed ping goes through Caddy to `front`, which reads the files of projects every two seconds. */
async function askForPong({ place, name, settings }: Setup): Promise<string | null> {
  const url = new URL(`http://127.0.0.1:${place.ports.http}/webhook/${name}`);
  const { isGood, text } = await ping(url, secretToSend(settings), place.files);
  return isGood ? null : `A signed ping to ${url} failed. ${text}`;
}

/** `run` loads a new site into Caddy within two seconds. A site with a certificate sends plain requests on to https. */
async function askSite({ place, name, payloadUrl, settings }: Setup): Promise<string | null> {
  const { hostname } = payloadUrl;
  // At /webhook/<project>, Caddy answers for any name.
  const pathname = payloadUrl.pathname.replace(`/webhook/${name}`, "/webhook");
  const url = new URL(`http://127.0.0.1:${place.ports.http}${pathname}`);
  const { outcome } = await ping(url, secretToSend(settings), place.files, hostname);
  if (outcome === "pong" || (outcome === "redirected" && hasOwnCertificate(payloadUrl, place))) return null;
  const status = await callRun(place.state.run, "status", {}).catch(() => null);
  return [`Caddy does not pass ${hostname}${pathname} on to Hotpush.`, ...(status?.serverFaults ?? [])].join(
    " ",
  );
}

/** A name that is known here may get its certificate at this very moment. */
const certificateWithinMs = 10_000;

/**
 * Sends a signed ping to the payload URL, as a git host will.
 *
 * @returns what is missing for that; null if it was answered
 */
export async function pingPublic({ place, payloadUrl, settings }: Setup): Promise<string | null> {
  const isKnown = (await addressesOf(payloadUrl.hostname)).length > 0;
  const withinMs = isKnown && hasOwnCertificate(payloadUrl, place) ? certificateWithinMs : 0;
  const ask = async () => {
    const { isGood, text } = await ping(payloadUrl, secretToSend(settings), place.files);
    return isGood ? null : text;
  };
  return await untilRight(ask, { withinMs, pauseMs });
}

/** Caddy gets a certificate within seconds if it can get one. */
const pageWithinMs = 60_000;
const pageTimeoutMs = 10_000;
const signedOut = 401;
/**
 * While Caddy changes its configuration, the one before still gets some requests; for a second or so, if that one is just asking
 * for a certificate.
 */
const answersInTurn = 10;
const answerPauseMs = 100;

/**
 * Asks the page as a visitor does who is not signed in, but at Caddy of this server: from inside, a name may lead elsewhere.
 */
async function askPage({ newPage: url, place }: Setup): Promise<string | null> {
  if (url === null) return null;
  const hasTls = hasOwnCertificate(url, place);
  const { http, https } = place.ports;
  const target = new URL(hasTls ? `https://127.0.0.1:${https}` : `http://127.0.0.1:${http}`);
  const request = { headers: { host: url.host }, timeoutMs: pageTimeoutMs, acceptsAnyCertificate: true };
  for (let good = 0; good < answersInTurn; good += 1) {
    const answer = await sendHttp(target, request).catch((error: NodeJS.ErrnoException) => error);
    if ("status" in answer && answer.status === signedOut) {
      await sleep(answerPauseMs);
      continue;
    }
    const said = "status" in answer ? `status ${answer.status}` : (answer.code ?? answer.message);
    const needs = `A certificate needs a DNS record of ${url.hostname} with the address of this server, and ports 80 and 443 open to the internet. Caddy tries more and more rarely; to have it try now, while no deployment runs, for no project can be reached for some seconds: docker compose --project-directory ${place.files.path} restart caddy`;
    return `The page does not answer at ${url.origin} (${said}).${hasTls ? ` ${needs}` : ""}`;
  }
  return null;
}
