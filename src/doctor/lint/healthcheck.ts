import type { ComposeService } from "../../platform/compose/model.ts";
import { getJson } from "../../platform/docker/engine.ts";
import { readForeignFile } from "../../platform/foreign-files.ts";
import { type Fault, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import type { LintedProject, Role } from "./lint.ts";

const longestConfiguration = 256 * 1024;

/** The part of an image's configuration that counts here. */
interface ImageConfig {
  readonly Healthcheck?: object | null;
  readonly ExposedPorts?: Readonly<Record<string, unknown>> | null;
}

/** Without a health check, a container counts as ready after 3 s, even if it does not answer. */
export async function lintHealthcheck(
  { name, service, isRolled }: Role,
  project: LintedProject,
  context: DoctorContext,
): Promise<readonly Fault[]> {
  const { healthcheck, image = `${project.model.name}-${name}` } = service;
  if (!isRolled || (healthcheck && !healthcheck.disable)) return [];
  const config = await imageConfig(image, context);
  if (!healthcheck?.disable && config.Healthcheck) return [];
  const port = requestPort(name, service, config, proxyConfigurations(project));
  if (port === null) return [];
  const text = `${name} has no health check: requests go to a new container before it can answer them. For example, in ${name}:`;
  const change = `services.${name}.healthcheck: {test: ["CMD", "curl", "-f", "http://localhost:${port}/"], interval: 10s, start_period: 30s, start_interval: 500ms}`;
  return [warning(text, { change })];
}

/** A HEALTHCHECK or EXPOSE of its Dockerfile counts too, if the image exists already. */
async function imageConfig(image: string, { engine }: DoctorContext): Promise<ImageConfig> {
  const answer = await engine();
  if (answer.kind !== "answers") return {};
  try {
    const path = `/images/${encodeURIComponent(image)}/json`;
    return (await getJson<{ readonly Config: ImageConfig }>(answer.engine, path)).Config;
  } catch {
    return {};
  }
}

/** The files that the project's proxies mount, as far as they can be read here. */
function proxyConfigurations({ roles }: LintedProject): readonly string[] {
  const volumes = roles.flatMap(({ kind, service }) => (kind === "proxy" ? (service.volumes ?? []) : []));
  return volumes.flatMap(({ type, source }) => {
    if (type !== "bind" || source === undefined) return [];
    try {
      return [readForeignFile(source, { mostBytes: longestConfiguration, isCut: true }).toString()];
    } catch {
      return []; // A directory, a socket, or a file that only root can read.
    }
  });
}

/** The port at which a service gets requests, or null if nothing names one, as for a worker. */
function requestPort(
  name: string,
  { ports = [], expose = [], labels = {} }: ComposeService,
  { ExposedPorts }: ImageConfig,
  configurations: readonly string[],
): string | null {
  const upstream = new RegExp(`(?:^|[\\s/])${name}\\}?:(\\d+)`, "m");
  const routed = Object.entries(labels).find(([key]) => /^traefik\..*\.server\.port$/.test(key))?.[1];
  const found = [
    ...ports.map(({ target }) => target),
    ...configurations.map((text) => upstream.exec(text)?.[1]),
    routed,
    ...expose,
    ...Object.keys(ExposedPorts ?? {}),
  ].find((port) => port !== undefined);
  if (found !== undefined) return Number.parseInt(String(found), 10).toString();
  return labels["hotpush.rollout"] === undefined ? null : "8080";
}
