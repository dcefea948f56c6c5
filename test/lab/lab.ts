import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { dockerOfMachine } from "../harness/environment.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const script = join(import.meta.dirname, "docker-lab.sh");

/** A Docker to test against: its environment, or the reason why there is none. */
export type Lab =
  | { readonly kind: "ready"; readonly env: NodeJS.ProcessEnv; readonly wasStarted: boolean }
  | { readonly kind: "unavailable"; readonly reason: string };

/** The variable with the reason why there is no Docker, so that not every test file tries again. */
export const unavailable = "HOTPUSH_LAB_UNAVAILABLE";

/** So long an engine may be gone that another test file kills and starts. */
const goneWithinMs = 60_000;
/** The network may fail for a moment while packages are downloaded. */
const attempts = 2;
const startTimeoutMs = 300_000;

/**
 * Returns an existing Docker, else starts the project's own lab (docker-lab.sh), which needs root and
 * Debian's packages. A lab that was started stays up, so that several test files share it: `closeLab` removes it.
 *
 * @throws Error if the Docker that DOCKER_HOST names does not answer, as after a test that has broken it
 */
export async function openLab(): Promise<Lab> {
  const known = process.env[unavailable];
  if (known) return { kind: "unavailable", reason: known };
  const { DOCKER_HOST, ...rest } = dockerOfMachine;
  delete process.env.DOCKER_HOST;
  Object.assign(process.env, rest, DOCKER_HOST ? { DOCKER_HOST } : {});
  if (DOCKER_HOST)
    await until(`an answer of the Docker at ${DOCKER_HOST}`, () => answers(process.env), goneWithinMs);
  if (DOCKER_HOST || (await answers(process.env)))
    return { kind: "ready", env: process.env, wasStarted: false };
  const obstacle = obstacleToLab();
  if (obstacle) return { kind: "unavailable", reason: `No Docker answers here, and ${obstacle}.` };
  const failure = await start(attempts);
  if (failure !== null) return { kind: "unavailable", reason: `The Docker lab did not start: ${failure}` };
  return { kind: "ready", env: { ...process.env, ...(await labVariables()) }, wasStarted: true };
}

/** @returns null when it is up, else why it is not */
async function start(attemptsLeft: number): Promise<string | null> {
  try {
    // One lab for all test files, even in parallel. The engine must not inherit the lock.
    await run("flock", ["--close", "/tmp/hotpush-lab.lock", script, "up"], { timeout: startTimeoutMs });
    return null;
  } catch (error) {
    await closeLab().catch(() => {});
    return attemptsLeft > 1 ? start(attemptsLeft - 1) : lastLine(error);
  }
}

/** Removes the lab with everything in it. */
export async function closeLab(): Promise<void> {
  await run(script, ["down"], { timeout: 120_000 });
}

/** Whether an engine and compose answer under `env`. */
async function answers(env: NodeJS.ProcessEnv): Promise<boolean> {
  try {
    await run("docker", ["version", "--format", "{{.Server.Version}}"], { env, timeout: 10_000 });
    await run("docker", ["compose", "version"], { env, timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

function obstacleToLab(): string | null {
  if (process.platform !== "linux" || !existsSync("/etc/debian_version")) {
    return "a lab of its own can only be made on Debian";
  }
  if (process.getuid?.() !== 0) return "a lab of its own needs root";
  return null;
}

async function labVariables(): Promise<Record<string, string>> {
  const { stdout } = await run("bash", ["-c", `eval "$("$0" env)"; env`, script]);
  const wanted = ["DOCKER_HOST", "DOCKER_CONFIG", "PATH"];
  const pairs = stdout.split("\n").map((line) => line.split(/=(.*)/s, 2));
  return Object.fromEntries(pairs.filter(([name]) => wanted.includes(name ?? "")));
}

function lastLine(error: unknown): string {
  if (error instanceof Error && "killed" in error && error.killed)
    return `not within ${startTimeoutMs / 1_000} s.`;
  const stderr = error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
  return stderr.trim().split("\n").at(-1) ?? "";
}
