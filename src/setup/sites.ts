import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { frontAlias, internalName, internalPort } from "#config/server";
import { type Setting, SetupError, self, type WantedFile } from "./planned-file.ts";
import { type GivenPlace, readPlace, type ServedPlan, type SitePlace, type Upstream } from "./served.ts";
import type { ServerPlace } from "./server.ts";

/**
 * Two sites of one address would make Caddy reject the files of all projects, and an app at the address of the page could act
 * for the page's visitors.
 *
 * @param page where the page will be; null: this run does not change that
 * @throws SetupError if an address of the plan, or of the page, is one of another project
 */
export function refuseTakenNames(
  sitesPath: string,
  project: string,
  { upstreams }: Pick<ServedPlan, "upstreams">,
  { name, page }: { readonly name: string | null; readonly page: URL | null },
): void {
  const own = upstreams.flatMap(({ place }) => (place.kind === "name" ? [place.name] : []));
  const names = new Set(name === null ? own : [name, ...own]);
  const others = [...sitesOfOthers(sitesPath, project)].flatMap(([site, addresses]) =>
    addresses.map((address) => ({ site, host: address.replace(/^https?:\/\//, "").replace(/:\d+$/, "") })),
  );
  const taken = others.find(({ host }) => names.has(host));
  if (taken !== undefined)
    throw new SetupError(
      `${taken.host} is an address of the project ${taken.site} (${sitesPath}/${taken.site}.caddy). Give this project a name of its own: hotpush init --url https://…`,
    );
  const host = page?.hostname ?? "";
  if (page !== null && (names.has(host) || others.some((one) => one.host === host && one.site !== "page")))
    throw new SetupError(
      `${host} is the address of a project, which could then act for the visitors of the page. Give the page a host name of its own: hotpush init --page https://hotpush.example.com`,
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

/** The site file of a project. */
export function siteFile(plan: ServedPlan, options: SiteOptions): WantedFile {
  const text = siteText(plan, options);
  return {
    name: `sites/${options.project}.caddy`,
    mode: 0o644,
    owner: self(),
    purpose: "its addresses",
    make: (before) => (before !== null && servesAll(before, text) ? before : text),
  };
}

/** A person may have added lines to a site. It stays as it is if no line of ours is missing. */
function servesAll(before: string, wanted: string): boolean {
  const lines = (text: string) => text.split("\n").map((line) => line.trim());
  const present = lines(before);
  return lines(wanted).every((line) => present.includes(line));
}

/** How the git host and visitors reach the project. */
export interface SiteOptions {
  readonly project: string;
  /** The host name whose /webhook gets the deliveries, whatever else is there; null: none. */
  readonly name: string | null;
  /** Whether Caddy gets certificates for the names; else they are served over plain HTTP. */
  readonly hasCertificate: boolean;
}

/** The text of a project's sites for Caddy: a block for each host name or port. */
export function siteText(
  plan: Pick<ServedPlan, "upstreams" | "left" | "internal">,
  options: SiteOptions,
): string {
  const { project, name } = options;
  const hasOwn = plan.upstreams.some(({ place }) => place.kind === "name" && place.name === name);
  const deliveries =
    name === null || hasOwn ? [] : [block(addressOf({ kind: "name", name }, options), bare(project))];
  const kept = plan.left.filter(({ isByChoice }) => isByChoice);
  const blocks = [
    `# The sites of ${project}, written by \`hotpush init\`; running that again keeps them up to date.`,
    ...kept.map(({ endpoint }) => `# ${endpoint.service}:${endpoint.port} stays published`),
    ...plan.upstreams.map((upstream) =>
      block(addressOf(upstream.place, options), linesOf(upstream, options)),
    ),
    ...deliveries,
    ...plan.internal.map(({ service, port }) =>
      block(`http://${internalName(service, project)}:${internalPort}`, [
        `import service ${project} ${service} ${port}`,
      ]),
    ),
  ];
  return `${blocks.join("\n")}\n`;
}

function addressOf(place: SitePlace, { hasCertificate }: SiteOptions): string {
  if (place.kind === "port") return `http://:${place.port}`;
  return `${hasCertificate ? "" : "http://"}${place.name}`;
}

function linesOf(
  { endpoint: { service, port }, place, isMain }: Upstream,
  { project, name }: SiteOptions,
): readonly string[] {
  // Without a name, the port of the app is what a person knows of the project.
  const isGiven = place.kind === "name" ? place.name === name : name === null && isMain;
  return [
    ...(isGiven ? [`import deliveries ${project}`] : []),
    `import service ${project} ${service} ${port}`,
  ];
}

/** A project without a page: only its webhook is at its host name. */
function bare(project: string): readonly string[] {
  return [`import deliveries ${project}`, "handle {", '\trespond "This project has no page." 404', "}"];
}

function block(address: string, lines: readonly string[]): string {
  return `\n${address} {\n${lines.map((line) => `\t${line}`).join("\n")}\n}`;
}

/**
 * The places of an earlier run, or as a person has changed them. Those that its host name then has decided are left out if it has
 * another one now.
 *
 * @param former the project's host name at that run
 * @param name its host name now
 */
export function placesIn(text: string, former: string | null, name: string | null): readonly GivenPlace[] {
  const isDerived = ({ place }: GivenPlace) =>
    place.kind === "name"
      ? place.name === former || place.name.endsWith(`.${former}`)
      : place.kind === "port" && former === null;
  return allPlacesIn(text).filter((one) => former === name || !isDerived(one));
}

function allPlacesIn(text: string): readonly GivenPlace[] {
  const blocks = [...text.matchAll(/^([^\s,]+)[^{\n]* \{\n([\s\S]*?)^\}/gm)];
  const served = blocks.flatMap(([, address = "", lines = ""]) => {
    if (address.endsWith(`.internal:${internalPort}`)) return [];
    const [, service, port] = /^\timport service \S+ (\S+) (\d+)$/m.exec(lines) ?? [];
    return service === undefined ? [] : given(service, Number(port), address.replace(/^https?:\/\//, ""));
  });
  const kept = [...text.matchAll(/^# ([\w.-]+):(\d+) stays published$/gm)];
  return [...served, ...kept.flatMap(([, service = "", port]) => given(service, Number(port), "none"))];
}

function given(service: string, port: number, at: string): readonly GivenPlace[] {
  const place = readPlace(at);
  return place === null ? [] : [{ service, port, place }];
}

/** The page of the server as it will be. */
export interface PagePlan {
  readonly url: URL;
  readonly settings: readonly Setting[];
  readonly site: WantedFile;
}

/**
 * Plans the page at `url`.
 *
 * @throws SetupError if Caddy does not have the port of `url`
 */
export function planPage(url: URL, place: ServerPlace): PagePlan {
  refuseOtherPort(url, place);
  return {
    url,
    settings: [{ name: "PAGE_URL", value: url.origin, isOpen: false }],
    site: {
      name: "sites/page.caddy",
      mode: 0o644,
      owner: self(),
      purpose: "the address of the page",
      make: (before) => (before?.includes(`\n${siteAddress(url, place)} {`) ? before : pageSite(url, place)),
    },
  };
}

function refuseOtherPort(url: URL, place: ServerPlace): void {
  const { protocol, hostname, port, origin } = url;
  const hasTls = protocol === "https:";
  // The port of a proxy in front of Caddy is not known here.
  if (hasTls && !hasOwnCertificate(url, place)) return;
  const [usual, own] = hasTls ? [443, place.ports.https] : [80, place.ports.http];
  if (Number(port || usual) === own) return;
  const right = `${protocol}//${hostname}${own === usual ? "" : `:${own}`}`;
  throw new SetupError(
    `Nothing would answer at ${origin}, because the page is at Caddy's port ${own}. Run: hotpush init --page ${right}`,
  );
}

/** Whether Caddy gets a certificate for it: if it has the usual ports. Else a proxy in front of it has one. */
export function hasOwnCertificate({ protocol }: URL, { ports }: Pick<ServerPlace, "ports">): boolean {
  return protocol === "https:" && ports.http === 80 && ports.https === 443;
}

function siteAddress(url: URL, place: ServerPlace): string {
  return `${hasOwnCertificate(url, place) ? "" : "http://"}${url.hostname}`;
}

function pageSite(url: URL, place: ServerPlace): string {
  return `# The page, at a host name of its own: below the address of an app, that app could act for its visitors.

${siteAddress(url, place)} {
	@whole not path */events
	encode @whole zstd gzip
	reverse_proxy ${frontAlias}:9001 {
		# Live logs: each line is passed on at once.
		flush_interval -1
	}
}
`;
}
