import "../harness/environment.ts";
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { answerLines, countingLines } from "../../src/rollout/requests.ts";
import type { SiteRequests } from "../../src/site-requests.ts";
import { freePort } from "../harness/listen.ts";
import { readDeployments } from "../harness/records.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);

export type Behaviour =
  | "graceful"
  | "dies-on-sigterm"
  | "ignores-sigterm"
  | "slow-start"
  | "lingers"
  | "sick"
  | "crashes"
  | "broken"
  | "falls";

export interface RolloutOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export interface Ending {
  readonly code: number;
  readonly output: string;
}

/** A compose project on a real engine: an app behind Caddy, and two other services. */
export type TestProject = Awaited<ReturnType<typeof makeProject>>;

/** Makes a project with a unique name in a temporary directory; `remove` deletes its containers, images and files. */
export async function makeProject(labEnv: NodeJS.ProcessEnv) {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-e2e-"));
  const name = basename(directory).toLowerCase();
  const port = await freePort();
  const env: NodeJS.ProcessEnv = {
    ...labEnv,
    COMPOSE_PROJECT_NAME: name,
    PORT: String(port),
    STATE_PATH: join(directory, "state"),
    HOTPUSH_MIN_FREE: "1 MiB",
  };
  const isOfProject = (path: string) => !/\.ts$|docker-lab\.sh$/.test(path);
  await cp(import.meta.dirname, directory, { recursive: true, filter: isOfProject });
  await mkdir(join(directory, "other"));
  const dockerfile = 'FROM debian:trixie-slim\nCMD ["sleep", "infinity"]\n';
  await writeFile(join(directory, "other/Dockerfile"), dockerfile);
  const docker = dockerIn(directory, env);
  const spawnRollout = ({ args = [], env: more }: RolloutOptions = {}) =>
    spawnHotpush(directory, { ...env, ...more }, ["rollout", ...args]);
  /** The containers of a service with their ids, running or not. */
  const containers = async (service: string): Promise<readonly string[]> => {
    const labels = [`com.docker.compose.project=${name}`, `com.docker.compose.service=${service}`];
    const filters = labels.flatMap((label) => ["--filter", `label=${label}`]);
    const listed = await docker("ps", "--all", ...filters, "--format", "{{.Names}} {{.ID}}");
    return listed.split("\n").filter(Boolean).sort();
  };
  return {
    name,
    directory,
    origin: `http://127.0.0.1:${port}`,
    env,
    /** Writes the sources of a version of the app; the roll-out names it `commit`. */
    write: (version: string, behaviour: Behaviour) => writeVersion(directory, version, behaviour),
    spawnRollout,
    rollOut: (options?: RolloutOptions) => endOf(spawnRollout(options)),
    hotpush: (...args: readonly string[]) => endOf(spawnHotpush(directory, env, args)),
    docker,
    containers,
    /** The names of those. */
    containerNames: async (service: string) =>
      (await containers(service)).map((line) => line.split(" ")[0] ?? ""),
    /** The directory of the live files on the host. */
    livePath: () => docker("volume", "inspect", `${name}_live`, "--format", "{{.Mountpoint}}"),
    remove: async () => {
      await removeFromEngine(docker, name);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export type Docker = (...args: readonly string[]) => Promise<string>;

/** Runs docker in `directory`. */
export function dockerIn(directory: string, env: NodeJS.ProcessEnv): Docker {
  return async (...args) => (await run("docker", args, { env, cwd: directory })).stdout.trim();
}

/** Removes everything with the project's name. */
export async function removeFromEngine(docker: Docker, name: string): Promise<void> {
  const label = `label=com.docker.compose.project=${name}`;
  const list = async (...what: readonly string[]) =>
    (await docker(...what, "--quiet", "--filter", label)).split("\n").filter(Boolean);
  const removeAll = async (ids: readonly string[], ...how: readonly string[]) => {
    if (ids.length > 0) await docker(...how, ...new Set(ids)).catch(() => {});
  };
  await removeAll(await list("ps", "--all"), "rm", "--force", "--volumes");
  await removeAll(await list("network", "ls"), "network", "rm");
  await removeAll(await list("volume", "ls"), "volume", "rm", "--force");
  await removeAll(await list("images"), "rmi", "--force");
}

/** Does `work` as soon as the output of `child` matches `pattern`, then waits for its end. */
export async function untilPrinted(
  child: ChildProcess,
  pattern: RegExp,
  work: () => Promise<unknown>,
): Promise<Ending> {
  let printed = "";
  let working: Promise<unknown> | null = null;
  child.stdout?.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
    if (working === null && pattern.test(printed)) working = work();
  });
  const ending = await endOf(child);
  if (working === null) throw new Error(`${pattern} is not in the output:\n${ending.output}`);
  await working;
  return ending;
}

/** Waits for the end of a command. @returns both of its outputs together */
export async function endOf(child: ChildProcess): Promise<Ending> {
  const chunks: string[] = [];
  child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => chunks.push(chunk.toString()));
  const [code]: (number | null)[] = await once(child, "close");
  return { code: code ?? 128, output: unwrapped(chunks.join("")) };
}

/** The output of a command, which must end with `code`. */
export async function outputOf(ending: Promise<Ending>, code: number = 0): Promise<string> {
  const ended = await ending;
  assert.equal(ended.code, code, ended.output);
  return ended.output;
}

/** The messages of a log of Hotpush, and its other lines, with each line of a report whole. */
export function messagesIn(log: string): string {
  const lines = log.split("\n").map((line) => (line.startsWith("{") ? String(JSON.parse(line).msg) : line));
  return unwrapped(lines.join("\n"));
}

/** The report of a roll-out with each line whole, as it was before it was wrapped. */
function unwrapped(output: string): string {
  return output.replace(/\n(?: {17}| {8})(?=\S)/g, " ");
}

/** The name in a live file of the project. */
export async function readLive(project: TestProject, file: string = "app"): Promise<string> {
  return (await readFile(join(await project.livePath(), file), "utf8")).trim();
}

/** The events of a roll-out with `--json`, each with its time. */
export function eventsIn(output: string): readonly (RolloutEvent & { readonly at: string })[] {
  const lines = output.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line));
}

/** The requests that it has counted. */
export function requestsIn(output: string): readonly SiteRequests[] {
  return eventsIn(output).find((one) => one.event === "requests")?.sites ?? assert.fail(output);
}

/** Writes the sources of a version of the app in `directory`. */
export function writeVersion(directory: string, version: string, behaviour: Behaviour): Promise<void> {
  return writeFile(join(directory, "app", "behaviour.json"), JSON.stringify({ version, behaviour }));
}

/** The version that answers at an address. */
export async function versionAt(origin: string): Promise<string> {
  const response = await fetch(origin, { headers: { connection: "close" } });
  return (await response.text()).split(" ")[0] ?? "";
}

const entry = join(import.meta.dirname, "hotpush.ts");
/** As for `npm start`: the tests run hundreds of commands. */
const compiled = join(import.meta.dirname, "../../node_modules/.cache/compiled");

/** Starts a command of Hotpush in `directory`, as a process that a test can kill. */
export function spawnHotpush(
  directory: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[],
): ChildProcess {
  return spawn(process.execPath, [entry, ...args], {
    cwd: directory,
    env: { NODE_COMPILE_CACHE: compiled, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** @returns what waits until a deployment has ended, and gives its state */
export function endingIn(statePath: string) {
  return (id: number, withinMs = 120_000): Promise<string> =>
    until(
      `the end of deployment ${id}`,
      () => {
        const state = readDeployments(statePath).find((row) => row.id === id)?.state ?? "unknown";
        return ["unknown", "queued", "running", "interrupted"].includes(state) ? null : state;
      },
      withinMs,
    );
}

const root = join(import.meta.dirname, "../..");

/** Builds Hotpush's real image from this checkout as `tag`. */
export async function buildImage(env: NodeJS.ProcessEnv, tag: string): Promise<void> {
  await run("docker", ["build", "--quiet", "--tag", tag, root], { env, timeout: 300_000 });
}

export async function removeImage(env: NodeJS.ProcessEnv, tag: string): Promise<void> {
  await run("docker", ["rmi", "--force", tag], { env }).catch(() => {});
}

/** Lines of a Caddyfile as a part that is indented by `tabs`. */
export const indented = (lines: readonly string[], tabs: number) =>
  lines.map((line) => "\t".repeat(tabs) + line).join("\n");

/** A Caddyfile as `init` writes it, with a log of requests, but more impatient. */
export const countingCaddyfile = `{
	admin unix//run/live/admin.sock|0600
	grace_period 30s
}
:80 {
	reverse_proxy {file./run/live/app}:8080 {
		lb_try_duration 300ms
		lb_try_interval 50ms
	}
${indented(countingLines, 1)}
	handle_errors 502 503 {
		@unreached {
			expression \`{err.message}.contains("dial")\`
			not path /webhook
		}
		handle @unreached {
${indented(answerLines, 3)}
			reverse_proxy app:8080
		}
	}
}
`;
