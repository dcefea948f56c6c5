import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "../../test/lab/project.ts";

/** One way to bring a new version into service. */
export interface Way {
  readonly name: string;
  readonly prepare: (project: TestProject) => Promise<void>;
  /** Prepares the first roll-out that counts. */
  readonly start: (project: TestProject) => Promise<unknown>;
  readonly deploy: (project: TestProject) => Promise<Deployed>;
  /** Waits before the next roll-out; this time does not count. */
  readonly settle: (project: TestProject) => Promise<unknown>;
}

/** How long a roll-out took, and how much of that was waiting for the app, if the way reports it. */
export interface Deployed {
  readonly durationMs: number;
  readonly healthyAfterMs?: number;
  readonly drainedMs?: number;
}

/** The usual way without live files: Caddy asks Docker's DNS for the service. */
const plainCaddyfile = ":80 {\n\treverse_proxy app:8080\n}\n";
const nothing = async () => {};

export const hotpush: Way = {
  name: "hotpush rollout",
  prepare: nothing,
  start: rollOut,
  deploy: rollOut,
  settle: nothing,
};

/** The length of Hotpush's roll-outs is compared with this one. */
export const upDetached: Way = {
  name: "docker compose up -d",
  prepare: plainCaddy,
  start: nothing,
  deploy: (project) => timed(() => project.docker("compose", "up", "--detach", "--build", "app")),
  settle: (project) => project.docker("compose", "up", "--detach", "--wait", "app"),
};

const scaleUp: Way = {
  name: "scale up, stop old",
  prepare: plainCaddy,
  start: nothing,
  deploy: (project) => timed(() => scaleUpAndStop(project)),
  settle: nothing,
};

export const others: readonly Way[] = [scaleUp, upDetached];

async function rollOut(project: TestProject): Promise<Deployed> {
  const startedMs = performance.now();
  const { code, output } = await project.rollOut({ args: ["--json"] });
  const durationMs = performance.now() - startedMs;
  if (code !== 0) throw new Error(output);
  const last = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  const app = last.services.find(({ service }: { readonly service: string }) => service === "app");
  return { durationMs, healthyAfterMs: app.healthyAfterMs ?? 0, drainedMs: app.drainedMs ?? 0 };
}

async function timed(work: () => Promise<unknown>): Promise<Deployed> {
  const startedMs = performance.now();
  await work();
  return { durationMs: performance.now() - startedMs };
}

async function plainCaddy(project: TestProject): Promise<void> {
  await writeFile(join(project.directory, "Caddyfile"), plainCaddyfile);
}

async function scaleUpAndStop(project: TestProject): Promise<void> {
  const [old = ""] = await names(project);
  await project.docker("compose", "build", "app");
  const scale = ["--detach", "--wait", "--no-recreate", "--scale", "app=2"];
  await project.docker("compose", "up", ...scale, "app");
  await project.docker("stop", old);
  await project.docker("rm", old);
}

async function names(project: TestProject): Promise<readonly string[]> {
  return (await project.containers("app")).map((line) => line.split(" ")[0] ?? "");
}
