import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ServerFiles } from "#config/server";
import { CommandError } from "#problems";
import type { ServerPlace } from "./machine.ts";
import { type PlannedFile, type Setting, self, type WantedFile } from "./planned-file.ts";
import { type GivenPlace, readHost, type ServedPlan } from "./served.ts";

/**
 * Two sites of one address would make Caddy reject the files of all projects, and an app at the address of the page could act
 * for the page's visitors.
 *
 * @param page where the page will be; null: this run does not change that
 * @throws CommandError if an address of the plan, or of the page, is one of another project
 */
export function refuseTakenNames(
  sitesPath: string,
  project: string,
  { upstreams }: Pick<ServedPlan, "upstreams">,
  { name, page }: { readonly name: string; readonly page: URL | null },
): void {
  const names = new Set([name, ...upstreams.map(({ host }) => host)]);
  const others = addressesOf(sitesPath).filter(({ site }) => site !== project);
  const taken = others.find(({ host }) => names.has(host));
  if (taken !== undefined)
    throw new CommandError(
      `${taken.host} is an address of the project ${taken.site} (${sitesPath}/${taken.site}.caddy). Give this project a name of its own: hotpush init --url https://…`,
    );
  const host = page?.hostname ?? "";
  if (page !== null && (names.has(host) || others.some((one) => one.host === host && one.site !== "page")))
    throw new CommandError(
      `${host} is the address of a project, which could then act for the visitors of the page. Give the page a host name of its own: hotpush init --page https://hotpush.example.com`,
    );
}

/** The addresses of Caddy in all site files: `site` is the file's name, of a project or `page`. */
function addressesOf(sitesPath: string) {
  const sites = existsSync(sitesPath) ? listSites({ sitesPath }) : [];
  return sites.flatMap((site) =>
    readSite(readFileSync(join(sitesPath, `${site}.caddy`), "utf8")).flatMap(({ addresses }) =>
      addresses.map((address) => {
        return { site, host: address.replace(/^https?:\/\/|:\d+$/g, "") };
      }),
    ),
  );
}

/** The names of the site files: of projects, and `page`. @throws Error if the directory cannot be read */
export function listSites({ sitesPath }: Pick<ServerFiles, "sitesPath">): readonly string[] {
  const names = readdirSync(sitesPath).filter((name) => name.endsWith(".caddy") && !name.startsWith("."));
  return names.sort().map((name) => name.slice(0, -".caddy".length));
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

/** The parts of the server's Caddyfile that sites import. */
const snippets = ["service", "deliveries", "deliveries_at", "page"];

/**
 * Caddy would reject the configuration of all projects, and not start again, for one site that imports what is not defined.
 *
 * @throws CommandError if a planned site needs a newer Caddyfile, which only `hotpush upgrade` writes
 */
export function refuseOldCaddyfile(files: readonly Pick<PlannedFile, "name" | "text" | "before">[]): void {
  const caddyfile = files.find(({ name }) => name === "Caddyfile")?.text ?? "";
  for (const { name, text } of files.filter(
    (one) => one.name.startsWith("sites/") && one.before !== one.text,
  ))
    for (const [, snippet = ""] of text.matchAll(/^\s+import\s+(\w+)/gm))
      if (snippets.includes(snippet) && !new RegExp(`^\\(${snippet}\\)`, "m").test(caddyfile))
        throw new CommandError(
          `${name} would import ${snippet}, which this server's Caddyfile doesn't define: the server is older than this command. Update it, then run this again: hotpush upgrade`,
        );
}

/**
 * The file of a project's sites.
 *
 * @param url where the project is reached
 * @param isPathGiven whether the command line gives the path of `url`
 */
export function projectSite(
  plan: ServedPlan,
  project: string,
  url: URL,
  place: CaddyPorts,
  isPathGiven: boolean,
): WantedFile {
  const hasCertificate = hasOwnCertificate(url, place);
  const alone = deliveriesLine(project, url.pathname, false);
  return wantedSite(project, "its addresses", (before) => {
    // A proxy in front may strip a prefix that nobody gave on purpose.
    const isOnlyThere = isPathGiven || before?.split("\n").some((line) => line.trim() === alone);
    return siteText(plan, project, url, hasCertificate, !isOnlyThere);
  });
}

/** @param site the name of its file, without `.caddy` */
function wantedSite(site: string, purpose: string, makeText: (before: string | null) => string): WantedFile {
  return {
    name: `sites/${site}.caddy`,
    mode: 0o644,
    owner: self(),
    purpose,
    make(before) {
      const text = makeText(before);
      return before !== null && servesAll(before, text) ? before : text;
    },
  };
}

/** A person may have added lines to a site. It stays as it is if no line of ours is missing from its block. */
function servesAll(before: string, wanted: string): boolean {
  const present = linesIn(before);
  return linesIn(wanted).every((line) => present.includes(line));
}

/** The lines of a site file, each with the opening of its block; comments may be anywhere. */
function linesIn(text: string): readonly string[] {
  let opening = "";
  return text.split("\n").flatMap((whole) => {
    const line = whole.trim();
    if (/^[^\s#({}][^{}]*\{\s*$/.test(whole)) opening = line;
    if (line === "") return [];
    return [line.startsWith("#") ? line : `${opening} ${line}`];
  });
}

/**
 * The line of a site that passes deliveries for `path` to Hotpush instead of the app.
 *
 * @param keepsUsual whether those for /webhook are Hotpush's too
 */
export function deliveriesLine(project: string, path: string, keepsUsual: boolean): string {
  const usual = ["/webhook", `/webhook/${project}`];
  if (usual.includes(path)) return `import deliveries ${project}`;
  return ["import deliveries_at", project, path, ...(keepsUsual ? usual : [])].join(" ");
}

/**
 * The text of a project's sites for Caddy: a block for each host name. The one of the payload URL also gets the deliveries.
 *
 * @param hasCertificate whether Caddy gets certificates for its names
 * @param keepsUsual whether deliveries for /webhook are Hotpush's beside those for the path of the payload URL
 */
export function siteText(
  plan: Pick<ServedPlan, "upstreams" | "left">,
  project: string,
  { hostname: name, pathname }: Pick<URL, "hostname" | "pathname">,
  hasCertificate: boolean,
  keepsUsual = false,
): string {
  const deliveries = deliveriesLine(project, pathname, keepsUsual);
  const kept = plan.left.filter(({ host }) => host !== null);
  const blocks = [
    `# The sites of ${project}, written by \`hotpush init\`; running that again keeps them up to date.`,
    ...kept.map(({ endpoint }) => `# ${endpoint.service}:${endpoint.port} stays published`),
    ...plan.upstreams.map(({ endpoint: { service, port }, host }) => {
      const lines = [...(host === name ? [deliveries] : []), `import service ${project} ${service} ${port}`];
      return block(addressOf(host, hasCertificate), lines);
    }),
  ];
  if (!plan.upstreams.some(({ host }) => host === name))
    blocks.push(
      block(addressOf(name, hasCertificate), [
        deliveries,
        "handle {",
        '\trespond "This project has no page." 404',
        "}",
      ]),
    );
  return `${blocks.join("\n")}\n`;
}

function addressOf(host: string, hasCertificate: boolean): string {
  return `${hasCertificate ? "" : "http://"}${host}`;
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
export function placesIn(text: string, former: string, name: string): readonly GivenPlace[] {
  const isDerived = ({ host }: GivenPlace) => host === former || host.endsWith(`.${former}`);
  const served = readSite(text).flatMap(({ addresses: [address = ""], services: [one] }) => {
    const host = one && readHost(address);
    return host ? { service: one.service, port: one.port, host } : [];
  });
  const kept = [...text.matchAll(/^# ([\w.-]+):(\d+) stays published$/gm)].map(([, service = "", port]) => ({
    service,
    port: Number(port),
    host: "none",
  }));
  return [...served, ...kept].filter((one) => former === name || !isDerived(one));
}

type CaddyPorts = Pick<ServerPlace, "ports">;

/**
 * Plans the page at `url`.
 *
 * @throws CommandError if Caddy does not have the port of `url`
 */
export function planPage(url: URL, place: CaddyPorts) {
  const { protocol, hostname, port, origin } = url;
  const hasCertificate = hasOwnCertificate(url, place);
  const [usual, own] = protocol === "https:" ? [443, place.ports.https] : [80, place.ports.http];
  // The port of a proxy in front of Caddy, which has the certificate then, is not known here.
  if ((protocol === "http:" || hasCertificate) && Number(port || usual) !== own)
    throw new CommandError(
      `Nothing would answer at ${origin}, because the page is at Caddy's port ${own}. Run: hotpush init --page ${protocol}//${hostname}${own === usual ? "" : `:${own}`}`,
    );
  const address = addressOf(hostname, hasCertificate);
  const text = `# The page, at a host name of its own: below the address of an app, that app could act for its visitors.
${block(address, ["import page"])}
`;
  return {
    setting: { name: "PAGE_URL", value: origin, isOpen: false } satisfies Setting,
    site: wantedSite("page", "the address of the page", () => text),
  };
}

/** Whether Caddy gets a certificate for it: if it has the usual ports. Else a proxy in front of it has one. */
export function hasOwnCertificate({ protocol }: URL, { ports }: CaddyPorts): boolean {
  return protocol === "https:" && ports.http === 80 && ports.https === 443;
}
