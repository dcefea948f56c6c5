import { createHash } from "node:crypto";
import { relative } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  type ComposeModel,
  type ComposeResource,
  type ComposeService,
  composeHash,
  plainText,
  serviceHashes,
} from "#platform/compose";
import { listContainers } from "#platform/docker/containers";
import { filteredBy, getJson } from "#platform/docker/engine";
import { withDotenv } from "#platform/env-file";
import { attempt } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { checkoutAround, lookAt, pathIn } from "#platform/git";
import { hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Containers, LockedContext, Rollout, ServiceRollout } from "./context.ts";
import {
  anonymousVolume,
  hashLabel,
  type Listed,
  networkChanged,
  type RolloutService,
  writableVolume,
} from "./project.ts";
import { note } from "./report.ts";
import type { Contents, Version } from "./state.ts";

/** More than any configuration. Of a larger file, only what is committed counts. */
const maxFileBytes = 1024 ** 2;

/**
 * Reads what the services get from the checkout and the compose file, by their names. Git is asked what is committed, unless
 * nothing is mounted from the checkout; what it does not know is data.
 */
export async function readContents(
  context: LockedContext,
  model: ComposeModel,
): Promise<Readonly<Record<string, Contents>>> {
  const { target, env } = context;
  const root = checkoutAround(target.projectDirectory);
  const sources = Object.entries(model.services).flatMap(([service, one]) =>
    sourcesOf(model, one, context).map((source) => ({ service, ...source })),
  );
  const places = sources.map(({ path }) => (root === null || !path ? null : pathIn(root, path)));
  const input = places.map((place) => (place === null ? "-\n" : `HEAD:${place}\n`)).join("");
  const args = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
  const isAsked = places.some((place) => place !== null);
  const ending = root !== null && isAsked ? await lookAt(root, args, { env, input }) : null;
  const lines = ending && hasSucceeded(ending) ? ending.output.split("\n") : [];
  if (isAsked && lines.length === 0)
    note(context, `git fails in ${root}: changes of mounted files are not known`);
  const contents: Record<string, Record<string, string>> = {};
  for (const [index, { service, path = "", name, text, isData }] of sources.entries()) {
    const [, committed] = /^([0-9a-f]+) (?:blob|tree)$/.exec(lines[index] ?? "") ?? [];
    const read = () => readForeignFile(path, { mostBytes: maxFileBytes }).toString("latin1");
    const present = text ?? (committed && !isData ? attempt(read, "") : "");
    const key = name ?? (relative(target.projectDirectory, path) || ".");
    if (text ?? committed)
      contents[service] = { ...contents[service], [key]: `${committed ?? ""} ${hash(present)}` };
  }
  return contents;
}

/** Files and directories that a service mounts or gets, by their paths, and other configs and secrets as texts. */
function sourcesOf(
  { configs = {}, secrets = {} }: ComposeModel,
  service: ComposeService,
  { target, env }: LockedContext,
): readonly { path?: string; name?: string; text?: string | undefined; isData?: boolean }[] {
  const mounts = (service.volumes ?? []).flatMap((volume) =>
    volume.type === "bind" && volume.source
      ? [{ path: volume.source, isData: writableVolume({ volumes: [volume] }) !== null }]
      : [],
  );
  const files = [
    ...(service.configs ?? []).map(({ source }) => ({ ...configs[source], name: `config ${source}` })),
    ...(service.secrets ?? []).map(({ source }) => ({ ...secrets[source], name: `secret ${source}` })),
  ].map(({ name, file, content, environment = "" }) => {
    if (file !== undefined) return { path: file };
    return { name, text: content ?? withDotenv(env, target.projectDirectory)[environment] };
  });
  return [...mounts, ...files];
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * Says why running containers must be replaced that have the right image and configuration: what they mount or get changed.
 * If Hotpush does not know that, a service that is rolled is replaced, and one that is recreated is named.
 *
 * @returns null if they are current
 */
export async function changeOf(on: ServiceRollout, containers: Containers): Promise<string | null> {
  const { service, current, version, model } = on;
  // A roll back brings back images, not files.
  if (version !== null || containers.length === 0) return null;
  const { [service.name]: now = {} } = await on.contents;
  const { containers: known = [], contents: then = {} } = current?.images[service.name] ?? {};
  const isKnown = containers.every(({ id }) => known.includes(id));
  const isMounted = (volume: string) =>
    containers.every(({ mounts }) => mounts.some(({ name }) => name === volume));
  const volumes = (model.services[service.name]?.volumes ?? []).flatMap(({ type, source = "" }) =>
    type === "volume" ? (model.volumes?.[source]?.name ?? []) : [],
  );
  const changed = [
    ...volumes.filter((volume) => !isMounted(volume)),
    ...Object.keys(now).filter((name) => isKnown && then[name] !== now[name]),
  ];
  if (changed.length > 0) return `${changed.join(", ")} changed`;
  const names = Object.keys(now).join(", ");
  if (isKnown || names === "") return null;
  const text = `whether it was started with the present ${names} is not known`;
  if (service.mode.how === "roll" && anonymousVolume(service, containers) === null) return text;
  note(on, `stays: ${text}. If not: docker compose up -d --no-deps --force-recreate ${service.name}`);
  return null;
}

/** Adds to the images of services that were rolled out which containers run them, and what those were started from. */
export async function withContents(rollout: Rollout, images: Version["images"]): Promise<Version["images"]> {
  const contents = await rollout.contents;
  const present = await listContainers(rollout.engine, rollout.project.name);
  const added = rollout.services.flatMap(({ name }) => {
    const containers = present.filter(({ service }) => service === name).map(({ id }) => id);
    const image = images[name];
    return image ? [[name, { ...image, containers, contents: contents[name] ?? {} }] as const] : [];
  });
  return { ...images, ...Object.fromEntries(added) };
}

/** Names the files that do not go back, in a roll back or when the old version serves again. */
export async function noteFilesKept(rollout: Rollout): Promise<void> {
  const { version, current, services, contents } = rollout;
  for (const service of services) {
    const { [service.name]: now = {} } = await contents;
    const then = (version ?? current)?.images[service.name]?.contents ?? {};
    const names = Object.keys(then).filter((name) => then[name] !== now[name]);
    const text = `${names.join(", ")} stays as in the checkout, also for the old version: it has a mounted directory at once, a file when its container starts again. To go back there too: git revert`;
    if (names.length > 0) note({ ...rollout, service }, text);
  }
}

/** The hashes that a current container of a service may have. Compose hashes a container that it is bound to by its id. */
export async function hashesOf(
  { engine, project, model }: Rollout | ServiceRollout,
  { name }: RolloutService,
): Promise<ReadonlySet<string>> {
  const service = model.services[name] ?? {};
  const isBound = /"service:|"volumes_from"/.test(JSON.stringify(service));
  const present = isBound ? await listContainers(engine, project.name) : [];
  const byName = present.toSorted((one, other) => (one.name < other.name ? 1 : -1));
  return serviceHashes(service, new Map(byName.map((one) => [one.service, one.id])));
}

/**
 * Refuses what no roll-out can apply, before any container is touched: a network of another name, because services on the one would
 * not reach those on the other; and a volume that compose would have to create again. `up` asks a user about that, and without an
 * answer goes on with the old one.
 *
 * @throws ProblemError `network_changed` or `volume_changed`
 */
export async function refuseChangedParts(rollout: Rollout): Promise<void> {
  const { engine, project, model, services, containers } = rollout;
  for (const service of services) {
    const hashes = await hashesOf(rollout, service);
    const keys = Object.keys(model.services[service.name]?.networks ?? {});
    const names = keys.flatMap((key) => model.networks?.[key]?.name ?? []);
    const running = containers.filter((one) => one.service === service.name && one.status === "running");
    const current = running.filter(({ configHash }) => hashes.has(configHash));
    const missing = names.find((name) => current.some(({ addresses }) => !addresses.has(name)));
    if (missing) throw networkChanged(`${service.name} is not on ${missing}, as by the compose file.`);
  }
  const defined = Object.values(model.volumes ?? {}).filter(({ external }) => !external);
  if (defined.length === 0) return;
  const path = `/volumes?${filteredBy({ label: [`com.docker.compose.project=${project.name}`] })}`;
  const { Volumes } = await getJson<{ readonly Volumes: readonly Volume[] | null }>(engine, path);
  for (const volume of defined) {
    const { name } = volume;
    const present = Volumes?.find(({ Name }) => Name === name);
    if (present === undefined || isSameVolume(present, volume)) continue;
    const detail = `The volume ${name} must be recreated, because its part of the compose file changed, and what Docker keeps in it is deleted by that. Undo that change to keep it; or save what you need of it, and on the machine: docker compose down && docker volume rm ${name} && docker compose up -d. No container was touched.`;
    throw new ProblemError({ code: "volume_changed", detail });
  }
}

/** A volume as the engine has it. */
interface Volume extends Listed {
  readonly Driver: string;
  readonly Options: Readonly<Record<string, string>> | null;
}

/** Compared with the volume itself if compose's hash differs: versions of compose may compute it differently. */
function isSameVolume(present: Volume, { name, driver = "local", ...rest }: ComposeResource): boolean {
  const { Labels, Driver, Options } = present;
  const known = Labels?.[hashLabel];
  if (known === undefined || known === composeHash({ name, driver, ...rest })) return true;
  const { driver_opts = {}, labels = {} }: typeof rest = JSON.parse(plainText(JSON.stringify(rest)));
  const own = Object.entries(Labels ?? {}).filter(([label]) => !label.startsWith("com.docker.compose."));
  const isSame = (one: object, other: object) => isDeepStrictEqual({ ...one }, { ...other });
  return Driver === driver && isSame(Options ?? {}, driver_opts) && isSame(Object.fromEntries(own), labels);
}
