import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import type { SetupService, SetupServices } from "../../src/init/compose-services.ts";
import { noChoices } from "../../src/init/upstreams/choices.ts";
import type { UpstreamOptions } from "../../src/init/upstreams/upstream.ts";

/** The answer that a person would give, in `x-answer` of each file. A port is `<service>:<port>`, with `/udp` if it is. */
export interface Answer {
  /** The service that stays in front of the others. */
  readonly proxy?: string;
  /** What Caddy serves, and at which host name; the main one first. */
  readonly at: Readonly<Record<string, string>>;
  /** What stays published, and words of the reason. */
  readonly stays?: Readonly<Record<string, string>>;
  /** The questions. */
  readonly asks?: readonly string[];
  /** The labels that the override gives. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The services that a roll-out recreates, after the override; all others but `once` run side by side. */
  readonly recreated?: readonly string[];
  readonly once?: readonly string[];
  /** What doctor finds about ports, names, networks and volumes, after the override. */
  readonly doctor?: readonly string[];
}

export interface Shape {
  readonly name: string;
  readonly path: string;
  readonly answer: Answer;
  /** The services, as compose reads them; a test with real compose holds this to it. */
  readonly services: SetupServices;
}

/** The projects of test/init/corpus: small files in the shapes of well-known public ones. */
export const corpus: readonly Shape[] = globSync(join(import.meta.dirname, "corpus/*.yaml"))
  .sort()
  .map((path) => {
    const file: ComposeFile = parse(readFileSync(path, "utf8"));
    const services = Object.entries(file.services)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, one]) => [name, readService(one)]);
    const name = basename(path, ".yaml");
    return { name, path, answer: file["x-answer"], services: Object.fromEntries(services) };
  });

/** Nothing is chosen, and Caddy has ports 80 and 443. */
export const corpusOptions: UpstreamOptions = {
  project: "shop",
  name: "app.example.org",
  main: null,
  choices: noChoices,
  isCaddyPublic: true,
  takenPorts: [80, 443],
};

interface ComposeFile {
  readonly "x-answer": Answer;
  readonly services: Readonly<Record<string, FileService>>;
}

/** The short forms that the corpus uses. */
interface FileService extends Omit<SetupService, "ports" | "volumes" | "depends_on" | "labels" | "networks"> {
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: readonly string[] | SetupService["depends_on"];
  readonly labels?: readonly string[] | SetupService["labels"];
  readonly networks?: readonly string[] | SetupService["networks"];
}

function readService(file: FileService): SetupService {
  const { ports, volumes, depends_on, labels, networks, environment, healthcheck, build, ...rest } = file;
  const isNetworked = rest.network_mode === undefined;
  return {
    ...rest,
    ...(build !== undefined && { build: typeof build === "string" ? { context: build } : build }),
    ...(ports && { ports: ports.flatMap(readPort) }),
    ...(volumes && { volumes: volumes.map(readVolume) }),
    ...(depends_on && { depends_on: readDependencies(depends_on) }),
    ...(labels && { labels: readPairs(labels) }),
    ...(environment && { environment: readPairs(environment) }),
    ...(healthcheck && { healthcheck: { ...healthcheck, test: readTest(healthcheck.test) } }),
    ...(isNetworked && { networks: readNetworks(networks ?? ["default"]) }),
  };
}

function readPort(text: string): NonNullable<SetupService["ports"]> {
  const [numbers = "", protocol = "tcp"] = text.split("/");
  const [targets = "", published, host_ip] = numbers.split(":").toReversed();
  const outside = published === undefined ? [] : range(published);
  return range(targets).map((target, place) => ({
    mode: "ingress",
    ...(host_ip !== undefined && { host_ip }),
    target,
    ...(outside.length > 0 && { published: String(outside[place]) }),
    protocol,
  }));
}

/** `2456-2457` is two ports. */
function range(text: string): readonly number[] {
  const [first = 0, last = first] = text.split("-").map(Number);
  return Array.from({ length: last - first + 1 }, (_, place) => first + place);
}

function readVolume(text: string): NonNullable<SetupService["volumes"]>[number] {
  const [source = "", target = "", mode] = text.split(":");
  const type = /^[./]/.test(source) ? "bind" : "volume";
  return { type, source, target, ...(mode === "ro" && { read_only: true }) };
}

function readDependencies(
  given: NonNullable<FileService["depends_on"]>,
): NonNullable<SetupService["depends_on"]> {
  if (!isList(given)) return given;
  return Object.fromEntries(given.map((name) => [name, { condition: "service_started" }]));
}

function readTest(test: string | readonly string[] = []): readonly string[] {
  return typeof test === "string" ? ["CMD-SHELL", test] : test;
}

function readPairs(
  given: readonly string[] | Readonly<Record<string, string | null>>,
): Record<string, string> {
  const pairs = isList(given) ? given.map((line) => line.split(/=(.*)/s)) : Object.entries(given);
  return Object.fromEntries(pairs.map(([name, value]) => [name, value ?? ""]));
}

function readNetworks(given: NonNullable<FileService["networks"]>): NonNullable<SetupService["networks"]> {
  return isList(given) ? Object.fromEntries(given.map((name) => [name, null])) : given;
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value);
}
