import type { SetupServices } from "../compose-services.ts";
import type { GivenPlace } from "./choices.ts";
import { type Endpoint, isPrivate } from "./endpoints.ts";
import { knownImage, type Use, uses } from "./known-images.ts";
import { portRank } from "./known-ports.ts";

/** A port that speaks HTTP, or that a person has chosen. */
export interface Candidate {
  readonly endpoint: Endpoint;
  readonly use: Use;
  /** The place that a person chose, or null. */
  readonly place: GivenPlace["place"] | null;
}

/** Words in the names of services that visitors reach, of those that pages call, and of those for a few people. */
const nameWords: readonly RegExp[] = [
  /(?:^|[-_])(?:web|www|site|website|frontend|front|client|ui|webui|app|webapp|portal|home|landing)(?:$|[-_\d])/i,
  /(?:^|[-_])(?:backend|back|api|server|graphql|rest|streaming|ws|websocket|socket|realtime)(?:$|[-_\d])/i,
  /(?:^|[-_])(?:admin|adminer|dashboard|docs|storybook|monitor|metrics|mail|debug|studio|console)(?:$|[-_\d])/i,
];
const front = 0;
const neutral = 0.5;

/** Sorted: the main one, which gets the project's own host name, comes first. */
export function rankCandidates(
  candidates: readonly Candidate[],
  services: SetupServices,
): readonly Candidate[] {
  const ranks = new Map(
    candidates.map((one) => [one, [...signsOf(one, candidates, services), ...portSigns(one, services)]]),
  );
  return candidates.toSorted((a, b) => compare(ranks.get(a) ?? [], ranks.get(b) ?? []));
}

/**
 * The services among which only a person can choose the main one: nothing but their ports and the order of the file
 * puts one before the other. Empty if it is clear.
 */
export function equalServices(ranked: readonly Candidate[], services: SetupServices): readonly string[] {
  const [first] = ranked;
  if (first === undefined) return [];
  const signs = signsOf(first, ranked, services);
  const equal = ranked.filter((one) => compare(signsOf(one, ranked, services), signs) === 0);
  const names = [...new Set(equal.map(({ endpoint }) => endpoint.service))];
  return names.length > 1 ? names : [];
}

/** Lower comes first. */
function signsOf(
  { endpoint, use }: Candidate,
  candidates: readonly Candidate[],
  services: SetupServices,
): readonly number[] {
  return [
    uses.indexOf(use),
    Number(isPrivate(endpoint)),
    Number(isNeeded(endpoint.service, candidates, services)),
    nameRank(endpoint.service),
  ];
}

/** A frontend depends on its backend; the main service is one that no other page needs. */
function isNeeded(name: string, candidates: readonly Candidate[], services: SetupServices): boolean {
  const pages = candidates.filter(({ endpoint, use }) => use === "page" && endpoint.service !== name);
  return pages.some(({ endpoint }) => services[endpoint.service]?.depends_on?.[name] !== undefined);
}

function nameRank(name: string): number {
  const rank = nameWords.findIndex((words) => words.test(name));
  const isAlso = nameWords.findLastIndex((words) => words.test(name));
  if (rank < 0) return neutral;
  // `admin-ui` and `api-docs` are for a few people.
  return rank === front ? isAlso : Math.max(rank, isAlso);
}

function portSigns({ endpoint }: Candidate, services: SetupServices): readonly number[] {
  const { service, port, published } = endpoint;
  const place = knownImage(services[service]?.image ?? "")?.http.indexOf(port) ?? 0;
  const outside = published.map((one) => portRank(Number(one.port)));
  return [Math.max(0, place), Math.min(...outside, portRank(0)), portRank(port)];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((one, place) => one !== b[place]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}
