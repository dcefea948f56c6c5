import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { followRun, NotRunningError } from "#calls/client";
import type { DeploymentJson } from "#calls/shapes";
import { serverComposeProject } from "#config/server";
import { type ComposeModel, type ComposeRun, composeCommand, runCompose } from "#platform/compose";
import { type Container, inspectImage, listContainers } from "#platform/docker/containers";
import type { Engine } from "#platform/docker/engine";
import { evidenceOf, isServing } from "#platform/docker/health";
import { kindOf } from "#platform/files";
import { type CommandEnding, hasSucceeded, outputOf, runInForeground } from "#platform/run-command";
import { CommandError } from "#problems";
import { readVersion } from "#version";
import type { Server } from "./server.ts";

/** The services of the server on their engine. */
export interface ServerContext {
  readonly server: Server;
  readonly engine: Engine;
  /** That of the person, who may have variables of other projects in it. */
  readonly env: NodeJS.ProcessEnv;
  /** Gives up what can be given up. */
  readonly signal?: AbortSignal;
}

/** A service whose new container is not healthy: what compose says, and the last lines of the container. */
export interface StartFailure {
  readonly service: string;
  readonly reason: readonly string[];
}

/** Gets the deployments that run, and are waited for. No other starts. */
export type OnWaiting = (running: readonly DeploymentJson[]) => void;

const readTimeoutMs = 60_000;
const maxModelBytes = 1024 ** 2;

/**
 * Finds the services whose containers are not as their definition says, or do not run.
 *
 * @param planned the definition, and the value of HOTPUSH_IMAGE, if the files do not have them yet
 * @throws CommandError if compose cannot read it
 */
export async function findOutdated(
  context: ServerContext,
  planned?: { readonly composeText: string; readonly image: string },
): Promise<readonly string[]> {
  const read = async (...args: readonly string[]) => {
    const run = planned && { input: planned.composeText, variables: { HOTPUSH_IMAGE: planned.image } };
    const reading = { timeoutMs: readTimeoutMs, maxOutputBytes: maxModelBytes, ...run };
    const ending = await compose(context, ["config", ...args], reading);
    if (hasSucceeded(ending)) return ending.output;
    throw new CommandError(`Compose cannot read compose.yaml. It says: ${ending.lastLines.at(-1)}`);
  };
  const [hashes, model] = await Promise.all([read("--hash", "*"), read("--format", "json")]);
  const { services }: ComposeModel = JSON.parse(model);
  const containers = await listContainers(context.engine, serverComposeProject);
  const outdated: string[] = [];
  for (const line of hashes.split("\n")) {
    const [name = "", hash] = line.trim().split(/\s+/);
    const image = services[name]?.image;
    const id = image && (await inspectImage(context.engine, image))?.id;
    const isRight = (one: Container) =>
      one.service === name && isServing(one) && one.configHash === hash && one.image === id;
    if (!containers.some(isRight)) outdated.push(name);
  }
  return outdated;
}

/** How long a new container may take until it is healthy. */
const healthyWithinS = 90;
/** The first time, Caddy's image is pulled. */
const upTimeoutMs = (healthyWithinS + 210) * 1_000;

/**
 * Replaces the containers of services as their files say, and waits until they are healthy. The old ones stop before the new
 * ones start: Caddy keeps deliveries waiting while `front` is away.
 *
 * @returns null, or the first that is not healthy
 */
export async function startServices(
  context: ServerContext,
  services: readonly string[],
): Promise<StartFailure | null> {
  if (services.length === 0) return null;
  // A container that is not healthy gets a fresh start, also if its definition is the same.
  const up = ["up", "--detach", "--no-deps", "--no-build", "--force-recreate"];
  const wait = ["--wait", "--wait-timeout", String(healthyWithinS)];
  const ending = await compose(context, [...up, ...wait, ...services], { timeoutMs: upTimeoutMs });
  return hasSucceeded(ending) ? null : await failureOf(context, services, ending);
}

const shownLines = 3;

async function failureOf(
  context: ServerContext,
  services: readonly string[],
  { lastLines, kind }: CommandEnding,
): Promise<StartFailure> {
  const said = lastLines.length > 0 ? lastLines.slice(-shownLines) : [`docker compose: ${kind}`];
  const containers = await listContainers(context.engine, serverComposeProject);
  const failedOf = (name: string) => containers.findLast((one) => one.service === name && !isServing(one));
  const [failed] = services.flatMap((name) => failedOf(name) ?? []);
  if (failed === undefined) return { service: services.join(" and "), reason: said };
  const evidence = await evidenceOf(context.engine, failed, [`/containers/${failed.id}`]);
  return { service: failed.service, reason: [...said, ...evidence] };
}

/**
 * Waits until no deployment runs, and keeps all from starting, while `run` or Caddy is replaced: `run` would end its scripts, and a
 * roll-out needs Caddy.
 *
 * @param command the one that asks for it
 * @returns a function that lets them start again; null if the wait was given up
 * @throws CommandError if this user may not use the socket of `run`
 */
export async function holdDeployments(
  { server, env, signal }: ServerContext,
  command: string,
  onWaiting: OnWaiting,
): Promise<(() => void) | null> {
  const held = new AbortController();
  const release = () => held.abort();
  signal?.addEventListener("abort", release, { once: true });
  const options = { requestedBy: env.SUDO_USER || env.USER, signal: held.signal };
  const events = followRun(server.state.run, "hold", { reason: command }, options);
  try {
    for (;;) {
      const { value } = await events.next();
      if (!value) return null;
      if (value.event === "quiet") break;
      onWaiting(value.running);
    }
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
    if (error.isForbidden)
      throw new CommandError(
        `Only root may do this. Run: sudo env SERVER_PATH=${server.files.path} ${command}`,
      );
    // It does not run, so neither does a deployment.
  }
  signal?.removeEventListener("abort", release);
  return release;
}

/** The person's shell may have values for variables of the server's `.env`; those of the file count. */
function compose(
  { server, env, signal }: ServerContext,
  args: readonly string[],
  { variables, ...run }: ComposeRun & { readonly variables?: Readonly<Record<string, string>> },
): Promise<CommandEnding> {
  const own = Object.fromEntries(Object.keys(server.env).map((name) => [name, undefined]));
  const { path: projectDirectory, composeFile } = server.files;
  const files = [run.input === undefined ? composeFile : "-"];
  const target = { projectDirectory, projectName: serverComposeProject, files };
  const options = { target, env: { ...env, ...own, ...variables }, signal };
  return runCompose(options, [...composeCommand(target), ...args], run);
}

/** The directory of the Hotpush that runs: a checkout, or an installed package. */
export const ownRoot = join(import.meta.dirname, "../..");

/** Built from the Hotpush that runs: the version that sets a project up is the one that deploys it. */
export const ownImage = `hotpush:${readVersion()}`;

export const sourcesLabel = "hotpush.sources";
const inspectTimeoutMs = 60_000;
/** The content of the image, as in .dockerignore. */
export const sources: readonly string[] = [
  "Dockerfile",
  "package.json",
  "package-lock.json",
  "bin",
  "examples",
  "src",
  "dist",
];

/** Which image of this version is on this machine. */
export async function findOwnImage(env: NodeJS.ProcessEnv) {
  const format = `{{.Architecture}} {{index .Config.Labels "${sourcesLabel}"}}`;
  const argv = ["docker", "image", "inspect", "--format", format, ownImage] as const;
  const found = await outputOf(argv, { env, timeoutMs: inspectTimeoutMs });
  const [architecture, sources] = found?.split(" ") ?? [];
  return found === null ? null : { architecture, isOfTheseSources: sources === sourcesDigest() };
}

/**
 * Builds the image; Docker's output, and that it takes a while, go to standard error.
 *
 * @throws CommandError if that fails
 */
export async function buildOwnImage(env: NodeJS.ProcessEnv): Promise<void> {
  process.stderr.write(`Building the image ${ownImage}; the first time takes a minute or two.\n`);
  const label = `${sourcesLabel}=${sourcesDigest()}`;
  const code = await runInForeground(["docker", "build", "--tag", ownImage, "--label", label, ownRoot], env);
  if (code === 0) return;
  throw new CommandError(
    "Hotpush's image could not be built, for the reason above. The files are written; when the cause is fixed, run this again.",
  );
}

/** A digest of the names and contents of all files in the image. */
export function sourcesDigest(): string {
  const at = (name: string) => join(ownRoot, name);
  const within = (name: string) =>
    readdirSync(at(name), { encoding: "utf8", recursive: true }).map((one) => join(name, one));
  const names = sources.flatMap((name) => (kindOf(at(name)) === "directory" ? within(name) : [name]));
  const files = names.filter((name) => kindOf(at(name)) === "file").sort();
  const hash = createHash("sha256");
  for (const name of files) hash.update(JSON.stringify([name, readFileSync(at(name), "latin1")]));
  return hash.digest("hex");
}
