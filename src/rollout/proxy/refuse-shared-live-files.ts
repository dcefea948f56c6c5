import { join } from "node:path";
import { serviceAlias } from "../../config/machine-part.ts";
import { type Engine, getJson, nullIfMissing } from "../../platform/docker/engine.ts";
import { ProblemError } from "../../problems.ts";
import { hostDirectoryOf } from "../compose/locate-project.ts";
import type { RolloutService } from "../compose/project.ts";
import { type Rollout, trafficOf } from "../context.ts";
import { namesReceiving } from "./live-file.ts";

/**
 * Refuses a live file that names a container of another compose project: two projects that share a volume at
 * /run/live would switch each other's traffic. A name may be taken over if it resolves to no container, or to one of
 * no project.
 *
 * @throws ProblemError `live_file_shared` with both projects and the file
 */
export async function refuseForeignLiveFiles(
  rollout: Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead">,
): Promise<void> {
  const { engine, project, liveDirectory } = rollout;
  if (liveDirectory === null) return;
  const everyone = await getJson<readonly Anyone[]>(engine, "/containers/json?all=1");
  const live = await hostDirectoryOf(engine, liveDirectory.path);
  const hasLiveFiles = ({ Mounts = [] }: Anyone) => Mounts.some(({ Source }) => Source === live);
  const sharing = new Set(everyone.filter(hasLiveFiles).map(projectOf));
  for (const service of project.services.filter(({ replacement }) => replacement.how === "roll")) {
    for (const name of await namesReceiving({ service, traffic: trafficOf(rollout, service) })) {
      // The service's own name, which stands there until the first roll-out.
      if (liveDirectory.project !== null && name === serviceAlias(service.name, liveDirectory.project))
        continue;
      const owner = await ownerOf(rollout, everyone, sharing, name);
      if (owner !== null && owner !== project.name)
        throw shared(join(liveDirectory.path, service.name), project.name, name, owner);
    }
  }
}

/** A container of any compose project, or of none, as the engine lists it. */
interface Anyone {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>> | null;
  readonly State: string;
  readonly Mounts?: readonly { readonly Source?: string }[];
}

function projectOf({ Labels }: Anyone): string | null {
  return Labels?.["com.docker.compose.project"] ?? null;
}

/**
 * The project of the container that `name` resolves to, by its own name or by an alias; null if there is none.
 *
 * @param sharing the projects that mount these live files
 */
async function ownerOf(
  { engine, project }: Pick<Rollout, "engine" | "project">,
  everyone: readonly Anyone[],
  sharing: ReadonlySet<string | null>,
  name: string,
): Promise<string | null> {
  const bearer = everyone.find(({ Names }) => Names.includes(`/${name}`));
  if (bearer) return projectOf(bearer);
  const holders = (await holdersOf(engine, everyone, name)).map(projectOf);
  // Both projects may have a service of this name. Then the other one owns it only if it also mounts these live
  // files.
  const isOwn = project.services.some((service) => service.name === name) || holders.includes(project.name);
  const rivals = holders.filter((holder) => holder !== null && holder !== project.name);
  return rivals.find((rival) => !isOwn || sharing.has(rival)) ?? null;
}

/** Running containers with `alias` in one of their networks. Only an inspection shows aliases. */
async function holdersOf(
  engine: Engine,
  everyone: readonly Anyone[],
  alias: string,
): Promise<readonly Anyone[]> {
  const running = everyone.filter(({ State }) => State === "running");
  const aliases = await Promise.all(running.map(({ Id }) => aliasesOf(engine, Id)));
  return running.filter((_, index) => aliases[index]?.includes(alias));
}

async function aliasesOf(engine: Engine, id: string): Promise<readonly string[]> {
  const found = await nullIfMissing(getJson<Inspected>(engine, `/containers/${id}/json`));
  return Object.values(found?.NetworkSettings.Networks ?? {}).flatMap(({ Aliases }) => Aliases ?? []);
}

interface Inspected {
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly Aliases: readonly string[] | null }>>;
  };
}

function shared(file: string, own: string, name: string, owner: string): ProblemError {
  const detail = `The live file ${file} of the project ${own} names ${name}, a container of the project ${owner}: a roll-out would take over the requests of ${owner}. Mount another volume at /run/live, or rename the service in the compose file and the Caddyfile. If ${owner} is gone for good: docker compose --project-name ${owner} down. Nothing was changed.`;
  return new ProblemError({ code: "live_file_shared", detail });
}

/**
 * Refuses a service with the name of another one's second, third… live file: `api.2` beside `api`.
 *
 * @throws ProblemError `compose_invalid`
 */
export function refuseSharedLiveFile(services: readonly RolloutService[]): void {
  const rolled = services.filter(({ replacement }) => replacement.how === "roll").map(({ name }) => name);
  for (const name of rolled) {
    const [, stem = ""] = /^(.+)\.\d+$/.exec(name) ?? [];
    if (!rolled.includes(stem)) continue;
    const detail = `The live file of the service ${name} would be that of a replica of ${stem}. Give it another name in the compose file, such as ${name.replaceAll(".", "-")}. Nothing was changed.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
}
