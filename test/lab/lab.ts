import "../harness/environment.ts";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
  const own = { ...process.env, ...(await labVariables()) };
  if (await answers(own)) return { kind: "ready", env: own, wasStarted: false };
  const obstacle = obstacleToLab();
  if (obstacle) return { kind: "unavailable", reason: `No Docker answers here, and ${obstacle}.` };
  try {
    // One lab for all test files, even in parallel. The engine must not inherit the lock.
    await run("flock", ["--close", "/tmp/hotpush-lab.lock", script, "up"], { timeout: startTimeoutMs });
  } catch (error) {
    await closeLab().catch(() => {});
    return { kind: "unavailable", reason: `The Docker lab did not start: ${lastLine(error)}` };
  }
  return { kind: "ready", env: { ...process.env, ...(await labVariables()) }, wasStarted: true };
}

/** Removes the lab with everything in it. */
export async function closeLab(): Promise<void> {
  await run(script, ["down"], { timeout: 120_000 });
}

/** Whether an engine and compose answer under `env`, with the image store that IMAGE_STORE asks for, if it is set. */
async function answers(env: NodeJS.ProcessEnv): Promise<boolean> {
  try {
    await run("docker", ["compose", "ls"], { env, timeout: 10_000 });
    const { IMAGE_STORE: wanted } = process.env;
    const info = wanted && (await run("docker", ["info", "--format", "{{.DriverStatus}}"], { env })).stdout;
    return !info || info.includes("io.containerd.snapshotter") === (wanted === "containerd");
  } catch {
    return false;
  }
}

function obstacleToLab(): string | null {
  if (!existsSync("/etc/debian_version")) return "a lab of its own can only be made on Debian";
  return process.getuid?.() === 0 ? null : "a lab of its own needs root";
}

async function labVariables(): Promise<Record<string, string>> {
  const { stdout } = await run("bash", ["-c", `eval "$("$0" env)"; env`, script]);
  const wanted = ["DOCKER_HOST", "DOCKER_CONFIG", "PATH"];
  const pairs = stdout.split("\n").map((line) => line.split(/=(.*)/s, 2));
  return Object.fromEntries(pairs.filter(([name]) => wanted.includes(name ?? "")));
}

function lastLine(error: unknown): string {
  const { killed, stderr = String(error) } = error as { readonly killed?: boolean; readonly stderr?: string };
  return killed ? `not within ${startTimeoutMs / 1_000} s.` : (stderr.trim().split("\n").at(-1) ?? "");
}

/**
 * Shared, for tests that only use the engine; shared with all but tests that make a server too, of which an engine
 * has only one; or alone, for tests that disturb others.
 */
export type Company = "together" | "one server" | "alone";

/**
 * A file that wants the engine alone holds the turnstile while it waits, so that others do not overtake it for ever. The
 * locks end with their holder: `read` returns when the test file's end of the pipe is closed.
 */
const share =
  'exec 8>"$0.turnstile" 9>"$0"; flock 8; flock --shared 9; flock --unlock 8; echo held; read -r _';
const hold: Readonly<Record<Company, string>> = {
  together: share,
  "one server": `exec 7>"$0.server"; flock 7; ${share}`,
  alone: 'exec 8>"$0.turnstile" 9>"$0"; flock 8; flock 9; echo held; read -r _',
};

/**
 * Waits until this test file may use the engine that way. If the run that started the file is killed, the file ends too: for
 * nobody, it would keep the engine from the next run for minutes.
 *
 * @returns a function that releases it
 */
export async function takeEngine(company: Company): Promise<() => Promise<void>> {
  const path = join(tmpdir(), "hotpush-lab-engine.lock");
  const startedBy = process.ppid;
  const isOrphan = () => process.env.NODE_TEST_CONTEXT !== undefined && process.ppid !== startedBy;
  const watch = setInterval(() => isOrphan() && process.exit(1), 500).unref();
  const holder = spawn("bash", ["-c", hold[company], path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  // If a hook fails, Node leaves out those that would release it. The lock ends with this process, which it must not keep alive.
  for (const handle of [holder, holder.stdin, holder.stdout] as { unref?(): void }[]) handle.unref?.();
  return async () => {
    clearInterval(watch);
    holder.stdin.end();
    await once(holder, "close");
  };
}

const liveRestoreSetting = /"live-restore": (\w+)/;

/** The engine of the lab, which a test may kill. */
export type OwnEngine = NonNullable<ReturnType<typeof ownEngine>>;

/** @returns null if the Docker in use is somebody else's */
export function ownEngine(labEnv: NodeJS.ProcessEnv) {
  const { DOCKER_HOST = "", ...env } = labEnv;
  const directory = dirname(DOCKER_HOST.replace("unix://", ""));
  if (!existsSync(join(directory, "dockerd.pid"))) return null;
  const config = join(directory, "daemon.json");
  const pid = async () => Number(await readFile(join(directory, "dockerd.pid"), "utf8"));
  const docker = async (...args: readonly string[]) =>
    (await run("docker", args, { env: labEnv })).stdout.trim();
  const isInSwarm = async () => (await docker("info", "--format", "{{.Swarm.LocalNodeState}}")) === "active";
  return {
    /** Kills it (SIGKILL). With `liveRestore`, containers keep running. */
    kill: async () => {
      const victim = await pid();
      process.kill(victim, "SIGKILL");
      await until("the end of the engine", () => isGone(victim));
    },
    /** Starts it with the settings that it had. Does nothing if it runs. */
    start: async () => {
      // A member of a Swarm refuses to start with live-restore.
      const [, isOn = "false"] = liveRestoreSetting.exec(await readFile(config, "utf8")) ?? [];
      await run(script, ["up"], { env: { ...env, LAB: directory, LIVE_RESTORE: isOn }, timeout: 60_000 });
    },
    /** Makes it a Swarm manager, if it is not one. */
    joinSwarm: async () => {
      if (!(await isInSwarm())) await docker("swarm", "init", "--advertise-addr", "127.0.0.1");
    },
    /** Leaves the Swarm. The engine forgets the names of all running containers, so no other test may run. */
    leaveSwarm: async () => {
      if (await isInSwarm()) await docker("swarm", "leave", "--force");
    },
    /** Whether containers survive their engine; excludes a Swarm. */
    liveRestore: async (isOn: boolean) => {
      const text = await readFile(config, "utf8");
      await writeFile(config, text.replace(liveRestoreSetting, `"live-restore": ${isOn}`));
      process.kill(await pid(), "SIGHUP");
    },
  };
}

/** A zombie counts as ended too. */
async function isGone(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return status === "" || /^State:\s+Z/m.test(status);
}
