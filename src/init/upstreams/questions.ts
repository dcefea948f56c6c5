import { writableVolume } from "../../rollout/project.ts";
import type { SetupServices } from "../compose-services.ts";
import { SetupError } from "../setup-error.ts";
import { type GivenPlace, readPlace } from "./choices.ts";
import { publishedText } from "./endpoints.ts";
import { planUpstreams, type UpstreamPlan } from "./plan.ts";
import { doubtfulWriters } from "./service-changes.ts";
import { findUnpublished } from "./unpublished.ts";
import type { LeftPort, Upstream, UpstreamOptions } from "./upstream.ts";

/** A question that only a person can answer. */
export interface UpstreamQuestion {
  /** Distinct for each thing that is asked. */
  readonly id: string;
  /** What a person should know before they answer. */
  readonly lines: readonly string[];
  readonly prompt: string;
  /** What Enter means. */
  readonly fallback: string;
  /** The options with the answer in them, or a sentence about why it cannot be used. */
  readonly read: (text: string) => UpstreamOptions | string;
}

/**
 * Plans the upstreams, and asks until nothing is open. Each question is asked once.
 *
 * @param ask gives the options with the answer in them; null: nothing is asked, and what is in doubt stays as it is
 * @throws SetupError as `planUpstreams`
 */
export async function settleUpstreams(
  services: SetupServices,
  options: UpstreamOptions,
  ask: ((question: UpstreamQuestion) => Promise<UpstreamOptions>) | null,
): Promise<{ readonly plan: UpstreamPlan; readonly options: UpstreamOptions }> {
  const asked = new Set<string>();
  for (let now = options; ; ) {
    const plan = planUpstreams(services, now);
    const question = questionsOf(services, now, plan).find(({ id }) => !asked.has(id));
    if (ask === null || question === undefined) return { plan, options: now };
    asked.add(question.id);
    now = await ask(question);
  }
}

/** The open questions of a plan, the most important first. */
export function questionsOf(
  services: SetupServices,
  options: UpstreamOptions,
  plan: UpstreamPlan,
): readonly UpstreamQuestion[] {
  if (plan.ownProxy !== null) return [];
  return [
    ...aboutMain(services, options, plan),
    ...aboutUnpublished(services, options, plan),
    ...plan.left.filter(({ isInDoubt }) => isInDoubt).map((left) => aboutProtocol(services, options, left)),
    ...plan.upstreams
      .filter((one) => isDerivedName(one, options))
      .map((one) => aboutName(services, options, one)),
    ...doubtfulWriters(services, plan.services).map((name) => aboutWriters(services, options, name)),
  ];
}

function aboutMain(
  services: SetupServices,
  options: UpstreamOptions,
  { equals }: UpstreamPlan,
): readonly UpstreamQuestion[] {
  const { name } = options;
  const [fallback] = equals;
  if (name === null || fallback === undefined) return [];
  const lines = [`Which service do visitors reach at ${name}? One of:`, `  ${equals.join(" ")}`];
  const read = (text: string) =>
    equals.includes(text) ? tried(services, { ...options, main: text }) : `${text} is none of them.`;
  return [{ id: "main", lines, prompt: "Service", fallback, read }];
}

/** A project that another proxy used to reach over a network may publish nothing. */
function aboutUnpublished(
  services: SetupServices,
  options: UpstreamOptions,
  { upstreams }: UpstreamPlan,
): readonly UpstreamQuestion[] {
  const { name } = options;
  const [page] = upstreams.length > 0 ? [] : findUnpublished(services);
  if (name === null || page === undefined) return [];
  const { service, port } = page;
  const lines = [
    `No published port speaks HTTP. ${service} seems to listen on port ${port} inside of the project.`,
    `Should Caddy serve it? Type ${name}, another host name, or none.`,
  ];
  return [
    aboutPlace(services, options, {
      service,
      port,
      lines,
      fallback: "none",
      prompt: `Address of ${service}`,
    }),
  ];
}

function aboutProtocol(
  services: SetupServices,
  options: UpstreamOptions,
  { endpoint }: LeftPort,
): UpstreamQuestion {
  const { service, port } = endpoint;
  const lines = [
    `${service} publishes port ${publishedText(endpoint).join(", ")}, and nothing shows whether it speaks HTTP.`,
    "If it does, Caddy can serve it at a host name.",
    otherPlaces,
  ];
  return aboutPlace(services, options, {
    service,
    port,
    lines,
    fallback: "none",
    prompt: `Address of ${service}`,
  });
}

/** A name that the plan made up; the person may have another one, or no DNS record for it. */
function isDerivedName({ service, port, place }: Upstream, { name, choices }: UpstreamOptions): boolean {
  const isChosen = choices.places.some((one) => one.service === service && (one.port ?? port) === port);
  return place.kind === "name" && place.name !== name && !isChosen;
}

function aboutName(
  services: SetupServices,
  options: UpstreamOptions,
  { service, port, place, published }: Upstream,
): UpstreamQuestion {
  const lines = [
    `${service} has a page too, at port ${published.join(", ")}. Caddy serves it at a host name.`,
    otherPlaces,
  ];
  const fallback = place.kind === "name" ? place.name : `:${place.port}`;
  return aboutPlace(services, options, { service, port, lines, fallback, prompt: `Address of ${service}` });
}

/** A new port recreates Caddy. */
const otherPlaces =
  "(none leaves it as it is; :port gives it a port of Caddy's, and no project of this machine answers for about a second.)";

interface PlaceQuestion extends Pick<UpstreamQuestion, "lines" | "prompt" | "fallback"> {
  readonly service: string;
  readonly port: number;
}

function aboutPlace(
  services: SetupServices,
  options: UpstreamOptions,
  { service, port, ...shown }: PlaceQuestion,
): UpstreamQuestion {
  const read = (text: string) => {
    const place = readPlace(text);
    if (place === null) return "That is not a host name, :port or none.";
    const given: GivenPlace = { service, port, place };
    const places = [...options.choices.places, given];
    return tried(services, { ...options, choices: { ...options.choices, places } });
  };
  return { id: `${service}:${port}`, ...shown, read };
}

function aboutWriters(services: SetupServices, options: UpstreamOptions, name: string): UpstreamQuestion {
  const target = writableVolume(services[name] ?? {})?.target ?? "";
  const answers: Readonly<Record<string, boolean>> = { yes: true, y: true, no: false, n: false };
  return {
    id: `writers ${name}`,
    lines: [
      `${name} is away for some seconds when it is deployed, unless two containers may write to ${target} at once.`,
      "May they? For a database file such as SQLite: no. For uploads: yes.",
    ],
    prompt: "Two at once, yes or no",
    fallback: "no",
    read: (text) => {
      const answer = answers[text.toLowerCase()];
      if (answer === undefined) return "Type yes or no.";
      const writers = { ...options.choices.writers, [name]: answer };
      return { ...options, choices: { ...options.choices, writers } };
    },
  };
}

/** The options, if a plan can be made with them. */
function tried(services: SetupServices, options: UpstreamOptions): UpstreamOptions | string {
  try {
    planUpstreams(services, options);
    return options;
  } catch (error) {
    if (error instanceof SetupError) return error.message;
    throw error;
  }
}
