import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testSecret } from "../harness/delivery.ts";
import { writeScript } from "../harness/temporary.ts";
import { buildImage, endingIn, makeProject, removeImage, type TestProject } from "./project.ts";

const example = join(import.meta.dirname, "../../examples/compose");

/** examples/compose with the lab's app in it, and with Hotpush from its real image. */
export type HostedProject = Awaited<ReturnType<typeof makeHosted>>;

interface HostedOptions {
  /** The text of deploy.sh. */
  readonly script: string;
  /** The service hotpush in compose.override.yaml. */
  readonly override?: Readonly<Record<string, unknown>>;
  /** Additional lines of .env. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Called after the files are written and before anything runs. */
  readonly prepare?: (project: TestProject) => Promise<void>;
}

/** Starts the project with plain compose and waits until Hotpush is healthy. */
export async function makeHosted(
  labEnv: NodeJS.ProcessEnv,
  { script, override = {}, variables = {}, prepare }: HostedOptions,
) {
  const project = await makeProject(labEnv);
  const image = `hotpush-e2e:${project.name}`;
  const remove = async () => {
    await project.remove();
    await removeImage(labEnv, image);
  };
  try {
    await buildImage(labEnv, image);
    await writeFiles(project, { image, script, override, variables });
    await prepare?.(project);
    await project.docker("compose", "up", "--detach", "--build", "--wait");
    const format = ["--format", "{{.Mountpoint}}"];
    const statePath = await project.docker("volume", "inspect", `${project.name}_hotpush`, ...format);
    return {
      ...project,
      /** The state directory of Hotpush, as the host sees the volume. */
      statePath,
      remove,
      /** The names of Hotpush's containers. */
      instances: async () => (await project.containers("hotpush")).map((line) => line.split(" ")[0] ?? ""),
      ending: endingIn(statePath),
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function writeFiles(
  project: TestProject,
  {
    image,
    script,
    override,
    variables,
  }: Required<Omit<HostedOptions, "prepare">> & { readonly image: string },
): Promise<void> {
  const { directory, env } = project;
  for (const name of ["compose.yaml", "Caddyfile", "other"]) {
    await rm(join(directory, name), { recursive: true, force: true });
  }
  const isOurs = (path: string) => !path.startsWith(join(example, "app"));
  await cp(example, directory, { recursive: true, filter: isOurs });
  await project.write("first", "graceful");
  const app = { healthcheck: { test: ["CMD", "./healthcheck.sh"] } };
  const services = { app, hotpush: override };
  await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services }));
  const settings = {
    COMPOSE_PROJECT_NAME: project.name,
    SITE: ":80",
    HTTP_PORT: new URL(project.origin).port,
    HTTPS_PORT: "0",
    REPO_PATH: directory,
    WEBHOOK_SECRET: testSecret,
    HOTPUSH_IMAGE: image,
    DOCKER_SOCKET: (env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", ""),
    CHECK_URL: "http://caddy/",
    ...variables,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(directory, ".env"), lines.join(""));
  writeScript(join(directory, "deploy.sh"), script);
}
