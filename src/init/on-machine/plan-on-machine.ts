import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../config/settings.ts";
import { findMachinePlace, findPortHolders, type MachinePlace } from "../../setup/place.ts";
import { findRemovedProject, formerProjectName, withRemovedFiles } from "../../setup/remove.ts";
import { findMachinePart, listMachineProjects, type MachinePart } from "../../setup/server.ts";
import {
  machineDirectories,
  machineWideFiles,
  type PlannedDirectory,
  receiveOwner,
  self,
} from "../../setup/server-files.ts";
import { portsOfOthers, refuseTakenNames, refuseTakenPageName, siteFile } from "../../setup/sites.ts";
import type { SetupServices } from "../compose-services.ts";
import { type GitHost, isGitHost } from "../git-host.ts";
import { findMachine } from "../machine.ts";
import { type PlannedFile, planFile } from "../planned-file.ts";
import type { SetupProject } from "../project.ts";
import type { GivenPlace } from "../upstreams/choices.ts";
import { notesOf } from "../upstreams/notes.ts";
import { overrideText, writersIn } from "../upstreams/override.ts";
import type { UpstreamPlan } from "../upstreams/plan.ts";
import { settleUpstreams, type UpstreamQuestion } from "../upstreams/questions.ts";
import { placesIn } from "../upstreams/site.ts";
import type { UpstreamOptions } from "../upstreams/upstream.ts";
import { parsePublicUrl } from "../webhook-address.ts";
import { findProjectAddress, type ProjectAddress } from "./address.ts";
import { chooseOverrideFile, type OverrideFile, planCheckoutFiles } from "./checkout-files.ts";
import { type PagePlan, planPage } from "./page.ts";
import { chooseProjectName } from "./project-name.ts";
import { projectFile } from "./project-settings.ts";

/** Options of the command line. */
export interface GivenOnMachine {
  readonly url: URL | null;
  readonly host: GitHost | null;
  readonly service: string | null;
  /** The name of the project. */
  readonly project: string | null;
  /** Where people reach the page. */
  readonly page: URL | null;
  /** The addresses of its services. */
  readonly places: readonly GivenPlace[];
}

/** Questions for what only a person can know. Each is asked only if the answer was not found; null is no answer. */
export interface QuestionsOnMachine {
  readonly askUrl: () => Promise<URL | null>;
  readonly askHost: (hostname: string) => Promise<GitHost | null>;
  /** null: none of them is asked. */
  readonly askUpstream: ((question: UpstreamQuestion) => Promise<UpstreamOptions>) | null;
}

/** A project of the machine part, and the files that both should have. */
export interface MachineSetup {
  readonly project: SetupProject;
  /** On the machine part. */
  readonly name: string;
  readonly place: MachinePlace;
  readonly services: SetupServices;
  readonly plan: UpstreamPlan;
  /** What a person should know of it. */
  readonly notes: readonly string[];
  readonly address: ProjectAddress;
  /** Where people reach the page; null: there is none. */
  readonly page: URL | null;
  readonly host: GitHost | null;
  readonly override: OverrideFile;
  readonly directories: readonly PlannedDirectory[];
  /** The services of this project that have ports of the machine until Caddy takes them over. */
  readonly holders: readonly string[];
  readonly machineFiles: readonly PlannedFile[];
  readonly checkoutFiles: readonly PlannedFile[];
}

/**
 * Finds what `project` needs to be deployed by the machine part, and asks for the rest. Nothing is written.
 *
 * @param services those of its compose files
 * @throws SetupError if it cannot be set up as it is
 */
export async function planOnMachine(
  project: SetupProject,
  services: SetupServices,
  env: NodeJS.ProcessEnv,
  given: GivenOnMachine,
  questions: QuestionsOnMachine,
): Promise<MachineSetup> {
  const place = await findMachinePlace(env);
  const { root } = project;
  const name = nameOf(project, place, given);
  const known = settingsIn(place, root) ?? {};
  const url = given.url ?? urlIn(known) ?? (await questions.askUrl());
  const host = await findHost(project, known, given, questions);
  const address = findProjectAddress(url, name, place.ports);
  const override = await chooseOverrideFile(project);
  const wanted: UpstreamOptions = {
    ...{ project: name, name: address.name, main: given.service },
    choices: {
      // Those of the command line count more.
      places: [...placesIn(siteIn(place, name), formerName(known, place), address.name), ...given.places],
      writers: writersIn(readIfThere(join(root, override.name))),
    },
    isCaddyPublic: place.ports.http === 80 && place.ports.https === 443,
    takenPorts: [place.ports.http, place.ports.https, ...portsOfOthers(place.files.sitesPath, name)],
  };
  const settled = await settleUpstreams(services, wanted, questions.askUpstream);
  const { plan } = settled;
  refuseTakenNames(place.files.sitesPath, name, plan, address);
  const page = await findPage(place, given);
  if (page !== null) refuseTakenPageName(place.files.sitesPath, page.url, plan, address);
  const options = {
    ...{ place, project, machine: findMachine(env), ports: ownPorts(plan) },
    settings: page?.settings ?? [],
  };
  const owner = { ...self(), gid: receiveOwner(place).gid };
  const ofProject = { name, project, known, payloadUrl: address.payloadUrl, host, given, owner };
  const site = siteFile(plan, { project: name, ...address });
  const wantedFiles = [
    ...machineWideFiles(options),
    ...(page === null ? [] : [page.site]),
    ...[projectFile(ofProject), site],
  ];
  const machineFiles = withRemovedFiles(place, { root, name }, wantedFiles).map((file) =>
    planFile(place.files.path, file),
  );
  return {
    ...{ project, name, place, services, plan, address, host, override },
    notes: notesOf(services, settled.options, plan),
    directories: machineDirectories(options),
    holders: await findPortHolders(root, portsOfCaddy(place, plan), env),
    page: page?.url ?? urlOfPage(place),
    machineFiles,
    checkoutFiles: await planCheckoutFiles(project, override, overrideText(name, plan)),
  };
}

async function findPage(place: MachinePlace, { page: url }: GivenOnMachine): Promise<PagePlan | null> {
  if (url === null) return null;
  return planPage(url, place, place.isNew ? null : readIfThere(place.files.composeFile));
}

function urlOfPage({ env: { PAGE_URL } }: MachinePlace): URL | null {
  return PAGE_URL && URL.canParse(PAGE_URL) ? new URL(PAGE_URL) : null;
}

/** The settings of the project in the checkout `root`, if the machine part has it. */
export function settingsOnMachine(root: string, env: NodeJS.ProcessEnv): Environment | null {
  const part = findMachinePart(env);
  return part && settingsIn(part, root);
}

function settingsIn(part: MachinePart, root: string): Environment | null {
  const present = listMachineProjects(part).find(({ env }) => env.REPO_PATH === root);
  return (present ?? findRemovedProject(part, root))?.env ?? null;
}

/** The text of the site file of an earlier run. */
function siteIn({ files }: MachinePart, project: string): string {
  return readIfThere(join(files.sitesPath, `${project}.caddy`));
}

/** The host name at the earlier run. */
function formerName(known: Environment, { ports }: MachinePlace): string | null {
  return findProjectAddress(urlIn(known), "former", ports).name;
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function portsOfCaddy({ ports }: MachinePlace, plan: UpstreamPlan): readonly number[] {
  return [ports.http, ports.https, ...ownPorts(plan).map(({ port }) => port)];
}

function ownPorts({ upstreams }: UpstreamPlan) {
  return upstreams.flatMap(({ place }) => (place.kind === "port" ? [place] : []));
}

function nameOf(project: SetupProject, place: MachinePlace, given: GivenOnMachine): string {
  const projects = listMachineProjects(place);
  const isThis = (env: Environment) => env.REPO_PATH === project.root;
  return chooseProjectName({
    path: project.remote?.path ?? project.root,
    given: given.project ?? formerProjectName(place, project.root),
    known: projects.find(({ env }) => isThis(env))?.name ?? null,
    others: new Map(
      projects.filter(({ env }) => !isThis(env)).map(({ name, env }) => [name, env.REPO_PATH ?? ""]),
    ),
  });
}

function urlIn({ WEBHOOK_URL }: Environment): URL | null {
  return WEBHOOK_URL ? parsePublicUrl(WEBHOOK_URL) : null;
}

async function findHost(
  { host, remote }: SetupProject,
  { HOTPUSH_GIT_HOST: known }: Environment,
  given: GivenOnMachine,
  { askHost }: QuestionsOnMachine,
): Promise<GitHost | null> {
  if (given.host !== null) return given.host;
  if (known && isGitHost(known)) return known;
  return host ?? (remote === null ? null : await askHost(remote.hostname));
}
