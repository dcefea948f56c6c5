import { formatDuration } from "#config/duration";
import { ProblemError } from "#problems";
import { createRedactor, looksLikeSecretFile, readSecretFile, secretsInVariable } from "#redaction";
import { type Container, inspectContainer } from "./container.ts";
import type { Engine } from "./engine.ts";
import type { Readiness } from "./health.ts";

/** Why a new container does not stay in service. */
export type Finding = Readiness | { readonly kind: "fell" };

/** Explains why `container` is not ready, with its last health output and its last log lines. */
export async function diagnose(
  engine: Engine,
  container: Container,
  readiness: Finding,
): Promise<ProblemError> {
  const now = (await inspectContainer(engine, container.id)) ?? container;
  return new ProblemError({
    code: "container_not_healthy",
    detail: `Container ${container.name} ${reasonOf(readiness, now)}.`,
    evidence: await evidenceOf(engine, now, [`/containers/${container.id}`]),
  });
}

function reasonOf(readiness: Finding, { health }: Container): string {
  switch (readiness.kind) {
    case "ended":
      return `ended with exit code ${readiness.exitCode} before it was healthy`;
    case "restarting":
      return "crashed and was restarted before it was healthy";
    case "unhealthy":
      return "is unhealthy: its health check failed too often";
    case "late":
      return `was not healthy after ${formatDuration(readiness.waitedMs)} (last: ${health ?? "running"})`;
    case "gone":
      return "was removed by somebody else before it was healthy";
    case "fell":
      return "was healthy, but fell as soon as it got requests";
    case "ready":
      return "is healthy";
  }
}

/** The parts of a container that may hold secrets. */
export type SecretHolder = Pick<Container, "environment" | "mounts">;

/**
 * What explains a container's failure: the output of its last health check, and its last log lines.
 *
 * @param sources paths of the engine that may have its log
 */
export async function evidenceOf(
  engine: Engine,
  container: SecretHolder & Pick<Container, "healthLog">,
  sources: readonly string[],
): Promise<readonly string[]> {
  const health = lastSaid(container.healthLog)
    .flatMap((output) => redactedLines(container, output))
    .filter(Boolean);
  const log = await logLines(engine, container, sources, 20);
  return [...section("Last health check:", health), ...section("Last log lines:", log)];
}

/** In a container that is just ending, a check cannot start any more; the check before it says why the container ended. */
function lastSaid(outputs: readonly string[]): readonly string[] {
  const last = outputs.findLast((output) => !output.startsWith("OCI runtime exec failed")) ?? outputs.at(-1);
  return last === undefined ? [] : [last];
}

/** The last lines that a container wrote to its outputs, with its known secrets redacted. */
export async function lastLogLines(engine: Engine, id: string, count: number): Promise<readonly string[]> {
  const container = await inspectContainer(engine, id).catch(() => null);
  return container ? logLines(engine, container, [`/containers/${id}`], count) : [];
}

async function logLines(
  engine: Engine,
  container: SecretHolder,
  sources: readonly string[],
  count: number,
): Promise<readonly string[]> {
  for (const source of sources) {
    // Logs explain a failure. If they cannot be read, that must not hide the failure.
    const raw = await engine.get(`${source}/logs?stdout=1&stderr=1&tail=${count}`).catch(() => null);
    if (raw) return redactedLines(container, plainLog(raw)).filter(Boolean).slice(-count);
  }
  return [];
}

/** If a container has no terminal, the engine puts 8 bytes before each piece: the stream, three zeros, the length. */
export function plainLog(raw: Buffer): string {
  const isMultiplexed = raw.length >= 8 && (raw[0] ?? 9) <= 2 && raw.readUIntBE(1, 3) === 0;
  if (!isMultiplexed) return raw.toString();
  const pieces: string[] = [];
  for (let at = 0; at + 8 <= raw.length; ) {
    const length = raw.readUInt32BE(at + 4);
    pieces.push(raw.toString("utf8", at + 8, at + 8 + length));
    at += 8 + length;
  }
  return pieces.join("");
}

/** The lines of `text` with the secrets from the container's environment and from files mounted into it redacted. */
function redactedLines(container: SecretHolder, text: string): readonly string[] {
  const secrets = container.environment.flatMap((variable) => secretsOf(container, variable));
  const mounted = container.mounts.filter(({ target }) => target.startsWith("/run/secrets/"));
  const all = [...secrets, ...mounted.map(({ source }) => readSecretFile(source))];
  return createRedactor(all).text(text).split("\n");
}

function secretsOf({ mounts }: SecretHolder, variable: string): readonly string[] {
  const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(variable) ?? [];
  const file = looksLikeSecretFile(name) ? mounts.find(({ target }) => target === value) : undefined;
  return [...secretsInVariable(name, value), ...(file ? [readSecretFile(file.source)] : [])];
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}
