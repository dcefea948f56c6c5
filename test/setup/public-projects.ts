import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import type { ComposeService } from "../../src/platform/compose-model.ts";
import type { SetupServices } from "../../src/setup/project.ts";
import type { ServedOptions } from "../../src/setup/served.ts";

/** A compose file of a public project, cut down to what matters here. */
export interface PublicProject {
  readonly name: string;
  readonly path: string;
  /** The services, as compose reads them; a test with real compose holds this to it. */
  readonly services: SetupServices;
}

export const publicProjects: readonly PublicProject[] = globSync(join(import.meta.dirname, "public/*.yaml"))
  .sort()
  .map((path) => {
    const file: ComposeFile = parse(readFileSync(path, "utf8"));
    const services = Object.entries(file.services)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, one]) => [name, readService(one)]);
    return { name: basename(path, ".yaml"), path, services: Object.fromEntries(services) };
  });

/** Nothing is chosen, nothing answers, and Caddy has ports 80 and 443. */
export const noChoices: ServedOptions = {
  name: "app.example.org",
  places: [],
  answers: new Map(),
  isCaddyPublic: true,
  takenPorts: [80, 443],
};

interface ComposeFile {
  readonly services: Readonly<Record<string, FileService>>;
}

/** The short forms that these files use. */
interface FileService
  extends Omit<ComposeService, "ports" | "volumes" | "depends_on" | "labels" | "networks"> {
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: readonly string[] | ComposeService["depends_on"];
  readonly labels?: readonly string[] | ComposeService["labels"];
  readonly networks?: readonly string[] | ComposeService["networks"];
}

function readService(file: FileService): ComposeService {
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

function readPort(text: string): NonNullable<ComposeService["ports"]> {
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

function readVolume(text: string): NonNullable<ComposeService["volumes"]>[number] {
  const [source = "", target = "", mode] = text.split(":");
  const type = /^[./]/.test(source) ? "bind" : "volume";
  return { type, source, target, ...(mode === "ro" && { read_only: true }) };
}

function readDependencies(
  given: NonNullable<FileService["depends_on"]>,
): NonNullable<ComposeService["depends_on"]> {
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

function readNetworks(given: NonNullable<FileService["networks"]>): NonNullable<ComposeService["networks"]> {
  return isList(given) ? Object.fromEntries(given.map((name) => [name, null])) : given;
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value);
}
