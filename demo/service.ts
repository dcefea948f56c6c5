import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Place } from "./git.ts";
import type { ServiceLog } from "./service-log.ts";

export interface Service {
  readonly url: string;
  readonly port: number;
  /** Stops it; resolves with its exit code. */
  readonly stop: () => Promise<number | null>;
}

const mainPath = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** Starts Hotpush itself in a process of its own, as `npm start` does, with `settings` as its configuration. */
export async function startService(
  { path, env }: Place,
  settings: Readonly<Record<string, string>>,
  log: ServiceLog,
): Promise<Service> {
  const child = spawn(process.execPath, [mainPath], {
    cwd: path,
    env: { ...env, WEBHOOK_HOST: "127.0.0.1", WEBHOOK_PORT: "0", SHUTDOWN_GRACE: "0", ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  log.read(child);
  const { port } = await log.waitFor(({ event }) => event === "service.started");
  return {
    url: `http://127.0.0.1:${String(port)}/webhook`,
    port: Number(port),
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      return child.exitCode;
    },
  };
}
