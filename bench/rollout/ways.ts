import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestProject } from "../../test/lab/project.ts";

/** One way to bring a new version into service. */
export interface Way {
  readonly name: string;
  readonly prepare: (project: TestProject) => Promise<void>;
  readonly deploy: (project: TestProject) => Promise<void>;
}

/** The way of somebody who has not heard of live files: Caddy asks Docker's DNS for the service. */
const plainCaddyfile = ":80 {\n\treverse_proxy app:8080\n}\n";

export const ways: readonly Way[] = [
  { name: "hotpush rollout", prepare: async () => {}, deploy: rollOut },
  { name: "scale up, stop old", prepare: plainCaddy, deploy: scaleUpAndStop },
  { name: "docker compose up -d", prepare: plainCaddy, deploy: upDetached },
];

async function rollOut(project: TestProject): Promise<void> {
  const { code, output } = await project.rollOut();
  if (code !== 0) throw new Error(output);
}

async function plainCaddy(project: TestProject): Promise<void> {
  await writeFile(join(project.directory, "Caddyfile"), plainCaddyfile);
}

async function upDetached(project: TestProject): Promise<void> {
  await project.docker("compose", "up", "--detach", "--build", "--wait", "app");
}

async function scaleUpAndStop(project: TestProject): Promise<void> {
  const [old = ""] = (await project.containers("app")).map((line) => line.split(" ")[0] ?? "");
  await project.docker("compose", "build", "app");
  await project.docker("compose", "up", "--detach", "--no-recreate", "--scale", "app=2", "app");
  const fresh = (await project.containers("app"))
    .map((line) => line.split(" ")[0] ?? "")
    .find((name) => name !== old);
  await untilHealthy(project, fresh ?? "");
  await project.docker("stop", old);
  await project.docker("rm", old);
}

async function untilHealthy(project: TestProject, container: string): Promise<void> {
  const health = () => project.docker("inspect", container, "--format", "{{.State.Health.Status}}");
  while ((await health()) !== "healthy") await sleep(150);
}
