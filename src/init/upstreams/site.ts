import { internalName, internalPort } from "../../config/machine-part.ts";
import type { Choices, GivenPlace } from "./choices.ts";
import { readPlace } from "./choices.ts";
import type { UpstreamPlan } from "./plan.ts";
import type { SitePlace, Upstream } from "./upstream.ts";

/** How the git host and visitors reach the project. */
export interface SiteOptions {
  readonly project: string;
  /** The host name whose /webhook gets the deliveries, whatever else is there; null: none. */
  readonly name: string | null;
  /** Whether Caddy gets certificates for the names; else they are served over plain HTTP. */
  readonly hasCertificate: boolean;
}

/** The text of the project's sites for Caddy: a block for each host name or port. */
export function siteText(plan: UpstreamPlan, options: SiteOptions): string {
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
  { service, port, place, isMain }: Upstream,
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
 * The places of an earlier run, or as a person has changed them.
 *
 * @param former the project's host name at that run
 * @param name its host name now: places that were derived from the former one follow it
 */
export function placesIn(text: string, former: string | null, name: string | null): Choices["places"] {
  return allPlacesIn(text).flatMap((given) => {
    const place = former === name ? given.place : moved(given.place, former, name);
    return place === null ? [] : [{ ...given, place }];
  });
}

/** Null: it was there only because the project had no host name, or the former one. */
function moved(
  place: GivenPlace["place"],
  former: string | null,
  name: string | null,
): GivenPlace["place"] | null {
  if (place.kind === "port") return former === null ? null : place;
  if (place.kind === "none" || former === null) return place;
  if (place.name !== former && !place.name.endsWith(`.${former}`)) return place;
  return name === null ? null : { kind: "name", name: `${place.name.slice(0, -former.length)}${name}` };
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
