import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const script = join(import.meta.dirname, "swarm-lab.sh");
const subnet = "192.168.77";

/** This machine, as the nodes see it. */
export const hostAddress = `${subnet}.253`;

/** A Swarm of three real nodes on this machine (swarm-lab.sh). Node 1 is its manager. */
export interface SwarmNodes {
  readonly address: (node: number) => string;
  /** To reach the engine of a node. */
  readonly env: (node: number) => NodeJS.ProcessEnv;
  readonly docker: (node: number, ...args: readonly string[]) => Promise<string>;
  /** `kill`: the engine only. `lose`: its power. */
  readonly lab: (verb: "kill" | "lose" | "start", node: number) => Promise<void>;
  /** Waits until the manager sees the node so. */
  readonly untilNode: (node: number, status: "Ready" | "Down") => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** Starts three engines, which are in no Swarm yet, out of the programs and images of the lab's own engine. */
export async function startNodes(labEnv: NodeJS.ProcessEnv): Promise<SwarmNodes> {
  const directory = join(tmpdir(), "hotpush-swarm-lab");
  const own = { ...labEnv, LAB: dirname((labEnv.DOCKER_HOST ?? "").replace("unix://", "")), DIR: directory };
  const lab = async (verb: string, ...args: readonly string[]) => {
    await run(script, [verb, ...args], { env: own, timeout: 120_000 });
  };
  const env = (node: number) => ({
    ...labEnv,
    DOCKER_HOST: `unix://${join(directory, `n${node}`, "docker.sock")}`,
  });
  const docker = async (node: number, ...args: readonly string[]) =>
    (await run("docker", args, { env: env(node), timeout: 60_000 })).stdout.trim();
  await lab("down");
  await lab("up");
  return {
    address: (node) => `${subnet}.${node}`,
    ...{ env, docker },
    lab: (verb, node) => lab(verb, String(node)),
    async untilNode(node, status) {
      const state = () => docker(1, "node", "inspect", `node${node}`, "--format", "{{.Status.State}}");
      await until(`node ${node} ${status}`, async () => (await state()) === status.toLowerCase(), 60_000);
    },
    remove: () => lab("down"),
  };
}
