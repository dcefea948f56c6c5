import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ServerPlace } from "./machine.ts";
import { type Setting, SetupError, self, type WantedFile } from "./planned-file.ts";
import type { ProjectAddress } from "./project.ts";
import { type GivenPlace, readPlace, type ServedPlan, type SitePlace } from "./served.ts";

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
  const others = addressesOf(sitesPath).filter(({ site }) => site !== project);
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
  return addressesOf(sitesPath).flatMap(({ site, port }) => (site === project ? [] : port));
}

/** The ports of Caddy for the site of this project alone. */
export function portsOfProject(sitesPath: string, project: string): readonly number[] {
  const others = portsOfOthers(sitesPath, project);
  const own = addressesOf(sitesPath).flatMap(({ site, port }) => (site === project ? port : []));
  return [...new Set(own)].filter((port) => !others.includes(port));
}

/** The addresses of Caddy in all site files: `site` is the file's name, of a project or `page`. */
function addressesOf(sitesPath: string) {
  const files = existsSync(sitesPath) ? readdirSync(sitesPath) : [];
  const sites = files.filter((file) => file.endsWith(".caddy")).map((file) => file.replace(/\.caddy$/, ""));
  return sites.flatMap((site) =>
    readSite(readFileSync(join(sitesPath, `${site}.caddy`), "utf8")).flatMap(({ addresses }) =>
      addresses.map((address) => {
        const [, host = "", port] = /^(?:https?:\/\/)?(.*?)(?::(\d+))?$/.exec(address) ?? [];
        return { site, host, port: port === undefined ? [] : [Number(port)] };
      }),
    ),
  );
}

/** Reads the blocks of a site file, as `siteText` writes it or as a person has changed it. */
function readSite(text: string) {
  const openings = [...text.matchAll(/^[^\s#({}][^{}]*(?=\{\s*$)/gm)];
  return openings.map(({ 0: opening, index }, place) => ({
    addresses: opening.split(/[\s,]+/).filter(Boolean),
    services: servicesIn(text.slice(index, openings[place + 1]?.index)),
  }));
}

/** The services that a site passes requests to, by its lines `import service shop web 8080`. */
export function servicesIn(text: string) {
  const lines = text.matchAll(/^[ \t]*import\s+service\s+(\S+)\s+(\w[\w.-]*)\s+(\d+)/gm);
  return Array.from(lines, ([, project = "", service = "", port]) => ({
    project,
    service,
    port: Number(port),
  }));
}

/** @param site the name of its file, without `.caddy` */
export function wantedSite(site: string, purpose: string, text: string): WantedFile {
  return {
    name: `sites/${site}.caddy`,
    mode: 0o644,
    owner: self(),
    purpose,
    make: (before) => (before !== null && servesAll(before, text) ? before : text),
  };
}

/** A person may have added lines to a site. It stays as it is if no line of ours is missing. */
function servesAll(before: string, wanted: string): boolean {
  const lines = (text: string) => text.split("\n").map((line) => line.trim());
  const present = lines(before);
  return lines(wanted).every((line) => present.includes(line));
}

/** How the git host and visitors reach the project: /webhook of its name gets the deliveries, whatever else is there. */
export interface SiteOptions extends Pick<ProjectAddress, "name" | "hasCertificate"> {
  readonly project: string;
}

/** The text of a project's sites for Caddy: a block for each host name or port. */
export function siteText(plan: Pick<ServedPlan, "upstreams" | "left">, options: SiteOptions): string {
  const { project, name, hasCertificate } = options;
  const hasOwn = plan.upstreams.some(({ place }) => place.kind === "name" && place.name === name);
  const deliveries =
    name === null || hasOwn ? [] : [block(addressOf({ kind: "name", name }, hasCertificate), bare(project))];
  const kept = plan.left.filter(({ place }) => place?.kind === "none");
  const blocks = [
    `# The sites of ${project}, written by \`hotpush init\`; running that again keeps them up to date.`,
    ...kept.map(({ endpoint }) => `# ${endpoint.service}:${endpoint.port} stays published`),
    ...plan.upstreams.map(({ endpoint: { service, port }, place }, index) => {
      // Without a name, the port of the app is what a person knows of the project.
      const isGiven = place.kind === "name" ? place.name === name : name === null && index === 0;
      const lines = [`import service ${project} ${service} ${port}`];
      return block(
        addressOf(place, hasCertificate),
        isGiven ? [`import deliveries ${project}`, ...lines] : lines,
      );
    }),
    ...deliveries,
  ];
  return `${blocks.join("\n")}\n`;
}

function addressOf(place: SitePlace, hasCertificate: boolean): string {
  if (place.kind === "port") return `http://:${place.port}`;
  return `${hasCertificate ? "" : "http://"}${place.name}`;
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
  const served = readSite(text).flatMap(({ addresses: [address = ""], services: [one] }) =>
    one ? given(one.service, one.port, address.replace(/^https?:\/\//, "")) : [],
  );
  const kept = [...text.matchAll(/^# ([\w.-]+):(\d+) stays published$/gm)];
  return [...served, ...kept.flatMap(([, service = "", port]) => given(service, Number(port), "none"))];
}

function given(service: string, port: number, at: string): readonly GivenPlace[] {
  const place = readPlace(at);
  return place === null ? [] : [{ service, port, place }];
}

/**
 * Plans the page at `url`.
 *
 * @throws SetupError if Caddy does not have the port of `url`
 */
export function planPage(url: URL, place: ServerPlace) {
  refuseOtherPort(url, place);
  const address = addressOf({ kind: "name", name: url.hostname }, hasOwnCertificate(url, place));
  const text = `# The page, at a host name of its own: below the address of an app, that app could act for its visitors.
${block(address, ["import page"])}
`;
  return {
    setting: { name: "PAGE_URL", value: url.origin, isOpen: false } satisfies Setting,
    site: wantedSite("page", "the address of the page", text),
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
