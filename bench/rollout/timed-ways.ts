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
  const { code, output } = await project.rollOut({ args: ["--json"] });
  if (code !== 0) throw new Error(output);
  const rolledMs = Date.now();
  await project.hotpush("prune");
  const events = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const steps = events.filter(({ event }) => event === "step");
  const prune = { step: "prune", durationMs: Date.now() - rolledMs, atMs: Date.now() };
  return [
    ...steps.map(({ step, durationMs, at }) => ({ step, durationMs, atMs: Date.parse(at) })),
    { step: "rolled out", durationMs: 0, atMs: rolledMs },
    prune,
  ];
}

/** As without Hotpush. */
export async function composeUp({ env, directory }: ServicesProject): Promise<readonly TimedEvent[]> {
  const argv = ["compose", "up", "--detach", "--build", "--wait"];
  const [code] = await once(spawn("docker", argv, { env, cwd: directory, stdio: "ignore" }), "exit");
  if (code !== 0) throw new Error(`docker compose ended with exit code ${code}`);
  return [];
}
