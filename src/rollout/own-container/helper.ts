import { inspectContainer, lastLogLines, removeContainer } from "../../platform/docker/container.ts";
import { type Engine, nullIfMissing } from "../../platform/docker/engine.ts";
import type { OwnService } from "./own-service.ts";
import type { Helper } from "./replacement-request.ts";

interface Inspected {
  readonly Image: string;
  readonly Config: { readonly User: string; readonly Env: readonly string[] | null };
  readonly HostConfig: {
    readonly GroupAdd: readonly string[] | null;
    readonly Tmpfs: Readonly<Record<string, string>> | null;
    readonly ReadonlyRootfs: boolean;
  };
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, unknown>> };
}

/** Compose labels the images that it builds, and a container has its image's labels: the helper is of no service. */
const noServiceOfCompose = { "com.docker.compose.project": "", "com.docker.compose.service": "" };

/** A helper drains, stops and starts a service, and brings the old one back where the new one fails. */
const longestHelpMs = 60 * 60_000;

/** How a helper ended: its exit code, and the last lines it wrote. */
export interface HelperEnding {
  readonly exitCode: number;
  readonly lines: readonly string[];
}

/**
 * Starts a container like `own` (image, mounts, user) that does what `own` cannot do to itself, and outlives it. One of
 * its name that is at work goes on instead: it may have taken something down that it is to bring back. One that an
 * earlier replacement left goes first.
 *
 * @param env what a deploy script would get: compose may need it to read the project
 */
export async function startHelper(
  engine: Engine,
  own: OwnService,
  { name, project, args }: Helper,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  if ((await inspectContainer(engine, name))?.status === "running") return;
  const like: Inspected = JSON.parse((await engine.get(`/containers/${own.id}/json`)).toString());
  const { GroupAdd, Tmpfs, ReadonlyRootfs } = like.HostConfig;
  const variables = { COMPOSE_PROJECT_NAME: project, ...env };
  await removeContainer(engine, name);
  await engine.post(`/containers/create?name=${name}`, {
    Image: like.Image,
    Cmd: args,
    User: like.Config.User,
    Env: Object.entries(variables).map(([key, value]) => `${key}=${value}`),
    Healthcheck: { Test: ["NONE"] },
    Labels: noServiceOfCompose,
    HostConfig: {
      VolumesFrom: [own.id],
      NetworkMode: Object.keys(like.NetworkSettings.Networks)[0] ?? "default",
      GroupAdd,
      Tmpfs,
      ReadonlyRootfs,
    },
  });
  await engine.post(`/containers/${name}/start`);
}

/** Waits for the end of the helper `name` and removes it; null where there is none. */
export async function seeHelperOff(engine: Engine, name: string): Promise<HelperEnding | null> {
  const answer = await nullIfMissing(engine.post(`/containers/${name}/wait`, undefined, longestHelpMs));
  if (answer === null) return null;
  const { StatusCode: exitCode }: { readonly StatusCode: number } = JSON.parse(answer.toString());
  const lines = await lastLogLines(engine, name, 40);
  await removeContainer(engine, name);
  return { exitCode, lines };
}
