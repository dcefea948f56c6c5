import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { internalPort } from "../config/machine-part.ts";
import type { ProjectAddress } from "../init/on-machine/address.ts";
import type { WantedFile } from "../init/planned-file.ts";
import { SetupError } from "../init/setup-error.ts";
import type { UpstreamPlan } from "../init/upstreams/plan.ts";
import { type SiteOptions, siteText } from "../init/upstreams/site.ts";
import { self } from "./server-files.ts";

/**
 * Two sites of one address would make Caddy reject the files of all projects.
 *
 * @throws SetupError if an address of the plan is one of another project
 */
export function refuseTakenNames(
  sitesPath: string,
  project: string,
  { upstreams }: UpstreamPlan,
  address: ProjectAddress,
): void {
  const names = upstreams.flatMap(({ place }) => (place.kind === "name" ? [place.name] : []));
  const wanted = new Set(address.name === null ? names : [address.name, ...names]);
  for (const [site, addresses] of sitesOfOthers(sitesPath, project)) {
    const taken = addresses.map(hostNameOf).find((one) => wanted.has(one));
    if (taken === undefined) continue;
    throw new SetupError(
      `${taken} is an address of the project ${site} (${sitesPath}/${site}.caddy). Give this project a name of its own: hotpush init --url https://…`,
    );
  }
}

/** @throws SetupError if the page would be at an address of a project */
export function refuseTakenPageName(
  sitesPath: string,
  { hostname }: URL,
  { upstreams }: UpstreamPlan,
  { name }: ProjectAddress,
): void {
  const own = upstreams.flatMap(({ place }) => (place.kind === "name" ? [place.name] : []));
  const taken = [...sitesOfOthers(sitesPath, "page").values()].flat().map(hostNameOf);
  if (![name, ...own, ...taken].includes(hostname)) return;
  throw new SetupError(
    `${hostname} is the address of a project, which could then act for the visitors of the page. Give the page a host name of its own: hotpush init --page https://hotpush.example.com`,
  );
}

/** The ports of Caddy for sites of other projects. */
export function portsOfOthers(sitesPath: string, project: string): readonly number[] {
  return portsIn([...sitesOfOthers(sitesPath, project).values()].flat());
}

/** The ports of Caddy for the site of this project alone. */
export function portsOfProject(sitesPath: string, project: string): readonly number[] {
  const file = join(sitesPath, `${project}.caddy`);
  const others = portsOfOthers(sitesPath, project);
  const own = existsSync(file) ? portsIn(addressesIn(readFileSync(file, "utf8"))) : [];
  return own.filter((port) => port !== internalPort && !others.includes(port));
}

function portsIn(addresses: readonly string[]): readonly number[] {
  return [...new Set(addresses.flatMap((one) => /:(\d+)$/.exec(one)?.[1] ?? []).map(Number))];
}

/** The addresses in the site files of other projects, by project. */
function sitesOfOthers(sitesPath: string, project: string): ReadonlyMap<string, readonly string[]> {
  const files = existsSync(sitesPath) ? readdirSync(sitesPath) : [];
  const others = files.filter((file) => file.endsWith(".caddy") && file !== `${project}.caddy`);
  return new Map(
    others.map((file) => [
      file.replace(/\.caddy$/, ""),
      addressesIn(readFileSync(join(sitesPath, file), "utf8")),
    ]),
  );
}

function addressesIn(site: string): readonly string[] {
  const openings = site.match(/^[^\s#({][^{]*(?=\{\s*$)/gm) ?? [];
  return openings.flatMap((line) => line.split(/[\s,]+/)).filter(Boolean);
}

function hostNameOf(address: string): string {
  return address.replace(/^https?:\/\//, "").replace(/:\d+$/, "");
}

/** The site file of a project. */
export function siteFile(plan: UpstreamPlan, options: SiteOptions): WantedFile {
  const text = siteText(plan, options);
  return {
    ...{ name: `sites/${options.project}.caddy`, mode: 0o644, owner: self(), purpose: "its addresses" },
    make: (before) => (before !== null && servesAll(before, text) ? before : text),
  };
}

/** A person may have added lines to a site. It stays as it is if no line of ours is missing. */
function servesAll(before: string, wanted: string): boolean {
  const lines = (text: string) => text.split("\n").map((line) => line.trim());
  const present = lines(before);
  return lines(wanted).every((line) => present.includes(line));
}
