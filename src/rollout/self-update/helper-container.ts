import { inspectContainer, removeContainer } from "../../platform/docker/container.ts";
import { lastLogLines } from "../../platform/docker/diagnosis.ts";
import { type Engine, nullIfMissing } from "../../platform/docker/engine.ts";
import type { OwnService } from "../../platform/docker/own-container.ts";
import type { Helper } from "./replacement-request.ts";

/** Compose labels the images it builds, and containers inherit labels: without this the helper would count as a service. */
const noServiceOfCompose = { "com.docker.compose.project": "", "com.docker.compose.service": "" };

/** A helper drains, stops and starts a service, and starts the old one again if the new one fails. */
const helperTimeoutMs = 60 * 60_000;

/** A helper's exit code and the last lines it wrote. */
export interface HelperEnding {
  readonly exitCode: number;
  readonly lines: readonly string[];
}

/**
 * Starts a container like `own` (same image, mounts and user) that replaces `own`, which cannot replace itself. If a
 * helper with this name already runs, it continues: it may have stopped something that it must start again. A stopped
 * one from an earlier replacement is removed first.
 *
 * @param env the variables that a deploy script gets: compose may need them to read the project
 */
export async function startHelper(
  engine: Engine,
  own: OwnService,
  { name, project, args }: Helper,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  if ((await inspectContainer(engine, name))?.status === "running") return;
  const like: InspectedOwn = JSON.parse((await engine.get(`/containers/${own.id}/json`)).toString());
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

/** Waits until the helper `name` has exited, and removes it. Null if there is none. */
export async function waitForHelper(engine: Engine, name: string): Promise<HelperEnding | null> {
  const answer = await nullIfMissing(engine.post(`/containers/${name}/wait`, undefined, helperTimeoutMs));
  if (answer === null) return null;
  const { StatusCode: exitCode }: { readonly StatusCode: number } = JSON.parse(answer.toString());
  const lines = await lastLogLines(engine, name, 40);
  await removeContainer(engine, name);
  return { exitCode, lines };
}

interface InspectedOwn {
  readonly Image: string;
  readonly Config: { readonly User: string; readonly Env: readonly string[] | null };
  readonly HostConfig: {
    readonly GroupAdd: readonly string[] | null;
    readonly Tmpfs: Readonly<Record<string, string>> | null;
    readonly ReadonlyRootfs: boolean;
  };
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, unknown>> };
}
