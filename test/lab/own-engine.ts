import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const script = join(import.meta.dirname, "docker-lab.sh");

/** The engine of the lab, which a test may kill. */
export interface OwnEngine {
  /** Kills it (SIGKILL). Containers live on while `liveRestore` is on. */
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** Whether containers survive their engine; not together with a Swarm. */
  readonly liveRestore: (isOn: boolean) => Promise<void>;
}

/** Gives it; null where the Docker that is used here is somebody else's. */
export function ownEngine({ DOCKER_HOST = "", ...env }: NodeJS.ProcessEnv): OwnEngine | null {
  const directory = dirname(DOCKER_HOST.replace("unix://", ""));
  if (!existsSync(join(directory, "dockerd.pid"))) return null;
  const config = join(directory, "daemon.json");
  const pid = async () => Number(await readFile(join(directory, "dockerd.pid"), "utf8"));
  return {
    kill: async () => {
      process.kill(await pid(), "SIGKILL");
    },
    start: async () => {
      await run(script, ["up"], { env: { ...env, LAB: directory, LIVE_RESTORE: "true" }, timeout: 120_000 });
    },
    liveRestore: async (isOn) => {
      const text = await readFile(config, "utf8");
      await writeFile(config, text.replace(/"live-restore": \w+/, `"live-restore": ${isOn}`));
      process.kill(await pid(), "SIGHUP");
    },
  };
}
