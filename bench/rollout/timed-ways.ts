import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ServicesProject } from "./services.ts";

/** The end of a step of a roll-out. */
export interface TimedEvent {
  readonly step: string;
  readonly durationMs: number;
  readonly atMs: number;
}

/** As the script of examples/ does. */
export async function rollOutAndPrune(project: ServicesProject): Promise<readonly TimedEvent[]> {
  const { code, output } = await project.rollOut({ args: ["--json", "--prune"] });
  if (code !== 0) throw new Error(output);
  const rolledMs = Date.now();
  const events = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const steps = events.filter(({ event }) => event === "step");
  return [
    ...steps.map(({ step, durationMs, at }) => ({ step, durationMs, atMs: Date.parse(at) })),
    { step: "rolled out", durationMs: 0, atMs: rolledMs },
  ];
}

/** As without Hotpush. */
export async function composeUp({ env, directory }: ServicesProject): Promise<readonly TimedEvent[]> {
  const argv = ["compose", "up", "--detach", "--build", "--wait"];
  const [code] = await once(spawn("docker", argv, { env, cwd: directory, stdio: "ignore" }), "exit");
  if (code !== 0) throw new Error(`docker compose ended with exit code ${code}`);
  return [];
}
