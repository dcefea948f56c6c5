import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const script = join(import.meta.dirname, "docker-lab.sh");
const liveRestoreSetting = /"live-restore": (\w+)/;

/** The engine of the lab, which a test may kill. */
export interface OwnEngine {
  /** Kills it (SIGKILL). With `liveRestore`, containers keep running. */
  readonly kill: () => Promise<void>;
  /** Starts it with the settings that it had. Does nothing if it runs. */
  readonly start: () => Promise<void>;
  /** Makes it a Swarm manager, if it is not one. */
  readonly joinSwarm: () => Promise<void>;
  /** Leaves the Swarm. The engine forgets the names of all running containers, so no other test may run. */
  readonly leaveSwarm: () => Promise<void>;
  /** Whether containers survive their engine; excludes a Swarm. */
  readonly liveRestore: (isOn: boolean) => Promise<void>;
}

/** @returns null if the Docker in use is somebody else's */
export function ownEngine(labEnv: NodeJS.ProcessEnv): OwnEngine | null {
  const { DOCKER_HOST = "", ...env } = labEnv;
  const directory = dirname(DOCKER_HOST.replace("unix://", ""));
  if (!existsSync(join(directory, "dockerd.pid"))) return null;
  const config = join(directory, "daemon.json");
  const pid = async () => Number(await readFile(join(directory, "dockerd.pid"), "utf8"));
  return {
    kill: async () => {
      const victim = await pid();
      process.kill(victim, "SIGKILL");
      await until("the end of the engine", () => isGone(victim));
    },
    start: async () => {
      // A member of a Swarm refuses to start with live-restore.
      const [, isOn = "false"] = liveRestoreSetting.exec(await readFile(config, "utf8")) ?? [];
      await run(script, ["up"], { env: { ...env, LAB: directory, LIVE_RESTORE: isOn }, timeout: 60_000 });
    },
    joinSwarm: async () => {
      if (await isInSwarm(labEnv)) return;
      await swarm(labEnv, "init", "--advertise-addr", "127.0.0.1").catch(async (error: unknown) => {
        // Another test file may have been faster.
        if (!(await isInSwarm(labEnv))) throw error;
      });
    },
    leaveSwarm: async () => {
      if (await isInSwarm(labEnv)) await swarm(labEnv, "leave", "--force");
    },
    liveRestore: async (isOn) => {
      const text = await readFile(config, "utf8");
      await writeFile(config, text.replace(liveRestoreSetting, `"live-restore": ${isOn}`));
      process.kill(await pid(), "SIGHUP");
    },
  };
}

async function isInSwarm(env: NodeJS.ProcessEnv): Promise<boolean> {
  const { stdout } = await run("docker", ["info", "--format", "{{.Swarm.LocalNodeState}}"], { env });
  return stdout.trim() === "active";
}

async function swarm(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<void> {
  await run("docker", ["swarm", ...args], { env });
}

/** A zombie counts as ended too. */
async function isGone(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return status === "" || /^State:\s+Z/m.test(status);
}
