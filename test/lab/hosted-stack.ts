import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { testSecret } from "../harness/delivery.ts";
import { writeScript } from "../harness/temporary.ts";
import { type EndingOf, endingIn } from "./ending.ts";
import { buildImage, removeImage } from "./image.ts";
import { makeStack, type TestStack } from "./stack.ts";

/** The stack of examples/swarm with Hotpush in it, from its real image. */
export interface HostedStack extends TestStack {
  /** The state directory of Hotpush, as the host sees the volume. */
  readonly statePath: string;
  /** The ids of Hotpush's running containers. */
  readonly instances: () => Promise<readonly string[]>;
  readonly ending: EndingOf;
}

export interface HostedStackOptions {
  /** The text of deploy.sh. */
  readonly script: string;
  /** Additional lines of .env. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Called after the files are written and before anything runs. */
  readonly prepare: (stack: TestStack) => Promise<void>;
}

/** Starts the stack using only Docker and Hotpush's image. */
export async function makeHostedStack(
  labEnv: NodeJS.ProcessEnv,
  options: HostedStackOptions,
): Promise<HostedStack> {
  const stack = await makeStack(labEnv, { withHotpush: true });
  const { name, docker } = stack;
  const image = `hotpush-e2e:${name}`;
  const socket = (labEnv.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
  const remove = async () => {
    await stack.remove();
    await removeImage(labEnv, image);
  };
  try {
    await buildImage(labEnv, image);
    await writeFiles(stack, { HOTPUSH_IMAGE: image, DOCKER_SOCKET: socket }, options);
    await rollOutFirst(stack, image, socket);
    const statePath = await docker("volume", "inspect", `${name}_hotpush`, "--format", "{{.Mountpoint}}");
    const ofHotpush = `label=com.docker.swarm.service.name=${name}_hotpush`;
    return {
      ...stack,
      statePath,
      remove,
      instances: async () =>
        (await docker("ps", "--quiet", "--no-trunc", "--filter", ofHotpush)).split("\n").filter(Boolean),
      ending: endingIn(statePath),
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function writeFiles(
  stack: TestStack,
  ofDocker: Readonly<Record<string, string>>,
  { script, variables = {}, prepare }: HostedStackOptions,
): Promise<void> {
  const settings = {
    REPO_PATH: stack.directory,
    WEBHOOK_SECRET: testSecret,
    CHECK_URL: "http://tasks.caddy/",
    ...ofDocker,
    ...variables,
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`);
  await appendFile(join(stack.directory, ".env"), lines.join(""));
  await stack.write("first", "graceful");
  writeScript(join(stack.directory, "deploy.sh"), script);
  await prepare(stack);
}

async function rollOutFirst(
  { name, directory, docker }: TestStack,
  image: string,
  socket: string,
): Promise<void> {
  // The state is the service's own, so the first version can be restored too.
  const state = `${name}_hotpush:/var/lib/hotpush`;
  const mounts = [`${socket}:/var/run/docker.sock`, `${directory}:${directory}`, state];
  await docker(
    "run",
    "--rm",
    ...mounts.flatMap((mount) => ["--volume", mount]),
    // Names of services do not resolve outside of the stack's network.
    ...["--env", "CHECK_URL=", "--workdir", directory, image, "rollout"],
  );
}
