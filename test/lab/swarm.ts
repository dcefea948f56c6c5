import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import { until } from "../harness/until.ts";
import { type Behaviour, type Docker, dockerIn, endOf, spawnHotpush, writeVersion } from "./project.ts";

const run = promisify(execFile);
const example = join(import.meta.dirname, "../../examples/swarm");

/** The stack of examples/swarm on a real Swarm, with the tests' app. Without Hotpush in it, Hotpush runs outside. */
export type TestStack = Awaited<ReturnType<typeof makeStack>>;

/**
 * Copies the example to a temporary directory, with a unique name; `remove` deletes everything.
 *
 * @param origin Caddy's address, with a port
 * @param hotpushImage the image of the service `hotpush`; without one, the stack has no such service
 */
export async function makeStack(labEnv: NodeJS.ProcessEnv, origin: string, hotpushImage = "") {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-swarm-"));
  const name = basename(directory).toLowerCase();
  const env: NodeJS.ProcessEnv = {
    ...labEnv,
    STATE_PATH: join(directory, "state"),
    HOTPUSH_MIN_FREE: "1 MiB",
  };
  const variables = {
    SITE: ":80",
    HTTP_PORT: new URL(origin).port,
    HTTPS_PORT: await freePort(),
    CHECK_URL: `${origin}/`,
    REPO_PATH: directory,
    WEBHOOK_SECRET: testSecret,
    HOTPUSH_IMAGE: hotpushImage,
    DOCKER_SOCKET: (labEnv.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", ""),
    TIMEOUT: "30m",
  };
  await cp(example, directory, { recursive: true });
  await cp(join(import.meta.dirname, "app"), join(directory, "app"), { recursive: true });
  // docker stack deploy must see the same variables as compose.
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(directory, ".env"), lines.join(""));
  const edit = async (from: string | RegExp, to: string) => {
    const path = join(directory, "stack.yaml");
    const text = await readFile(path, "utf8");
    const edited = text.replaceAll(from, to);
    if (edited === text) throw new Error(`${from} is not in ${path}.`);
    await writeFile(path, edited);
  };
  await edit(/\bshop\b/g, name);
  for (const [from, to] of quicker) await edit(from, to);
  if (hotpushImage === "") await edit(/^ {2}hotpush:\n {4}image(?:.*\n)*?\n/gm, "");
  const docker = dockerIn(directory, env);
  return {
    name,
    directory,
    origin,
    edit,
    docker,
    /** Writes the sources of a version of the app. */
    write: (version: string, behaviour: Behaviour) => writeVersion(directory, version, behaviour),
    spawnHotpush: (...args: readonly string[]) => spawnHotpush(directory, env, args),
    hotpush: (...args: readonly string[]) => endOf(spawnHotpush(directory, env, args)),
    /** The ids of the tasks of a service that Swarm wants to run. */
    tasks: async (service: string) => {
      const wanted = ["--filter", "desired-state=running", "--format", "{{.ID}}"];
      return (await docker("service", "ps", `${name}_${service}`, ...wanted)).split("\n").sort();
    },
    remove: async () => {
      await removeFromSwarm(docker, name);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A cheap health check, and shorter time-outs than in a real stack. */
const quicker = [
  ['"node", "healthcheck.js"', '"./healthcheck.sh"'],
  ["start_period: 30s", "start_period: 2s"],
  ["interval: 10s", "interval: 2s"],
  ["retries: 3", "retries: 2"],
  ["monitor: 5s", "monitor: 1s"],
] as const;

async function removeFromSwarm(docker: Docker, name: string): Promise<void> {
  await docker("stack", "rm", name).catch(() => {});
  const label = `label=com.docker.stack.namespace=${name}`;
  const isGone = async () => (await docker("ps", "--all", "--quiet", "--filter", label)) === "";
  // If a container is not removed in time, the rest is removed anyway.
  await until("the end of the stack's containers", isGone, 60_000).catch(() => {});
  for (const volume of ["caddy-data", "hotpush"]) {
    await docker("volume", "rm", `${name}_${volume}`).catch(() => {});
  }
  const built = `label=com.docker.compose.project=${name}`;
  const images = await docker("images", "--quiet", "--filter", built);
  if (images) await docker("rmi", "--force", ...new Set(images.split("\n"))).catch(() => {});
}

const script = join(import.meta.dirname, "swarm-lab.sh");
const subnet = "192.168.77";

/** This machine, as the nodes see it. */
export const hostAddress = `${subnet}.253`;

/** A Swarm of three real nodes on this machine (swarm-lab.sh). Node 1 is its manager. */
export type SwarmNodes = Awaited<ReturnType<typeof startNodes>>;

/** Starts three engines, which are in no Swarm yet, out of the programs and images of the lab's own engine. */
export async function startNodes(labEnv: NodeJS.ProcessEnv) {
  const directory = join(tmpdir(), "hotpush-swarm-lab");
  const own = { ...labEnv, LAB: dirname((labEnv.DOCKER_HOST ?? "").replace("unix://", "")), DIR: directory };
  const lab = async (verb: string, ...args: readonly string[]) => {
    await run(script, [verb, ...args], { env: own, timeout: 120_000 });
  };
  const env = (node: number) => ({
    ...labEnv,
    DOCKER_HOST: `unix://${join(directory, `n${node}`, "docker.sock")}`,
  });
  const docker = (node: number, ...args: readonly string[]) => dockerIn("/", env(node))(...args);
  await lab("down");
  await lab("up");
  return {
    address: (node: number) => `${subnet}.${node}`,
    env,
    docker,
    /** `kill`: the engine only. `lose`: its power. */
    lab: (verb: "kill" | "lose" | "start", node: number) => lab(verb, String(node)),
    /** Waits until the manager sees the node so. */
    async untilNode(node: number, status: "Ready" | "Down") {
      const state = () => docker(1, "node", "inspect", `node${node}`, "--format", "{{.Status.State}}");
      await until(`node ${node} ${status}`, async () => (await state()) === status.toLowerCase(), 60_000);
    },
    remove: () => lab("down"),
  };
}
