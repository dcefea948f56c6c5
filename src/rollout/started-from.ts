import { createHash } from "node:crypto";
import { lstatSync, realpathSync } from "node:fs";
import { join, relative } from "node:path";
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
import type { Containers, LockedContext, Rollout, ServiceContents, ServiceRollout } from "./context.ts";
import {
  anonymousVolume,
  hashLabel,
  type Listed,
  networkChanged,
  type RolloutService,
  writableVolume,
} from "./project.ts";
import { note, type ServiceOutcome } from "./report.ts";
import { type Contents, readVersions, type Version, writeVersions } from "./state.ts";

/** More than any configuration. Of a larger file, only what is committed counts. */
const maxFileBytes = 1024 ** 2;

/**
 * Reads what the services get from the checkout and the compose file, by their names; null if git fails for one of its files. Git
 * is asked what is committed, unless nothing is mounted from the checkout; what it does not know is data.
 */
export async function readContents(context: LockedContext, model: ComposeModel): Promise<ServiceContents> {
  const { target } = context;
  const root = checkoutAround(target.projectDirectory);
  const sources = Object.entries(model.services).flatMap(([service, one]) =>
    sourcesOf(model, one, context).map((source) => ({ service, ...source })),
  );
  const paths = new Set(sources.flatMap(({ path }) => (path ? [path] : [])));
  const ids = root === null ? null : await readCommitted(context, root, [...paths]);
  const contents: Record<string, Record<string, string> | null> = {};
  for (const { service, path = "", name, text, isData } of sources) {
    const committed = ids?.get(path);
    if (committed === null) contents[service] = null;
    if (contents[service] === null) continue;
    const read = () => readForeignFile(path, { mostBytes: maxFileBytes }).toString("latin1");
    const present = text ?? (committed && !isData ? attempt(read, "") : "");
    const key = name ?? (relative(target.projectDirectory, path) || ".");
    if (text ?? committed)
      contents[service] = { ...contents[service], [key]: `${committed ?? ""} ${hash(present)}` };
  }
  return contents;
}

/** The ids of what is committed at `paths` in the checkout `root` and its submodules; null where git fails. */
async function readCommitted(
  context: LockedContext,
  root: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const inCheckout = paths.filter((path) => pathIn(root, path) !== null);
  const byCheckout = Map.groupBy(inCheckout, (path) => ownCheckout(root, path));
  const asking = [...byCheckout].map(async ([checkout, found]) => {
    const input = found.map((path) => `HEAD:${pathIn(checkout, path)}\n`).join("");
    const args = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
    const ending = await lookAt(checkout, args, { env: context.env, input });
    if (!hasSucceeded(ending)) {
      note(context, `git fails in ${checkout}: changes of mounted files are not known`);
      return found.map((path) => [path, null] as const);
    }
    const lines = ending.output.split("\n");
    const idIn = (line = "") => /^([0-9a-f]+) (?:blob|tree)$/.exec(line)?.[1];
    return found.map((path, index) => [path, idIn(lines[index]) ?? ""] as const);
  });
  return new Map((await Promise.all(asking)).flat());
}

/** The submodule of `root` that `path` is in, else `root`. A clone in an ignored directory has a directory `.git`, and is data. */
function ownCheckout(root: string, path: string): string {
  const own = checkoutAround(attempt(() => realpathSync(path), path)) ?? root;
  return attempt(() => lstatSync(join(own, ".git")).isFile(), false) ? own : root;
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
  const { [service.name]: read = {} } = await on.contents;
  const now = read ?? {};
  const { containers: known = [], contents: then = {} } = current?.images[service.name] ?? {};
  const isKnown = read !== null && containers.every(({ id }) => known.includes(id));
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
  const names = read === null ? "files" : Object.keys(now).join(", ");
  if (isKnown || names === "") return null;
  const text = `whether it was started with the present ${names} is not known`;
  if (service.mode.how === "roll" && anonymousVolume(service, containers) === null) return text;
  const restart = `docker compose stop ${service.name} && hotpush rollout ${service.name}`;
  const recreate = `docker compose up -d --no-deps --force-recreate ${service.name}`;
  note(on, `stays: ${text}. To be sure: ${hasCopies(now) ? recreate : restart}`);
  return null;
}

/** Whether some of it is copied into a container when compose creates it. A mount is looked up at each start. */
function hasCopies(contents: Contents): boolean {
  return Object.keys(contents).some((name) => /^(?:config|secret) /.test(name));
}

/**
 * Adds to the images of services that were rolled out which containers run them, and what those were started from. If that is not
 * known of all, it stays as it was: a container that was left has older files, or nobody knows which.
 */
export async function withContents(
  { engine, project, services, containers: before, contents, current }: Rollout,
  images: Version["images"],
): Promise<Version["images"]> {
  const read = await contents;
  const present = await listContainers(engine, project.name);
  const added = services.flatMap(({ name }) => {
    const image = images[name];
    if (!image) return [];
    const { [name]: now = {} } = read;
    const { containers: known = [], contents: then = {} } = current?.images[name] ?? {};
    const isSame = now !== null && Object.entries(now).every(([file, id]) => then[file] === id);
    const wasLeft = (id: string) =>
      before.some((one) => {
        const ran = one.status === "running" || one.status === "paused";
        return one.id === id && (ran || hasCopies(now ?? {}));
      });
    const ids = present.filter(({ service }) => service === name).map(({ id }) => id);
    const isKnown = now !== null && ids.every((id) => !wasLeft(id) || (isSame && known.includes(id)));
    return [[name, { ...image, containers: isKnown ? ids : known, contents: isKnown ? now : then }] as const];
  });
  return { ...images, ...Object.fromEntries(added) };
}

/** A version to go back to, of whose images those that serve again were started from what `images` say. */
export function withStarted(version: Version, images: Version["images"]): Version {
  const entries = Object.entries(version.images).map(([name, image]) => {
    const { containers = image.containers, contents = image.contents } = images[name] ?? {};
    return [name, { ...image, ...(containers && { containers }), ...(contents && { contents }) }] as const;
  });
  return { ...version, images: Object.fromEntries(entries) };
}

/**
 * Records what the containers were started from that a roll-out leaves when it fails, such as those of services that were recreated.
 * The next one must see what changed since then.
 *
 * @throws ProblemError `state_unusable`
 */
export async function recordLeft(rollout: Rollout, outcomes: readonly ServiceOutcome[]): Promise<void> {
  const versions = await readVersions(rollout.versionsPath);
  const current = versions.at(-1);
  if (!current) return;
  const contents = await rollout.contents;
  // An old container that was created again has lost what was copied into it.
  const isWhole = ({ name }: RolloutService) =>
    outcomes.some(({ service }) => service === name) || !hasCopies(contents[name] ?? {});
  const services = rollout.services.filter(isWhole);
  const images = await withContents({ ...rollout, services, current }, current.images);
  await writeVersions(rollout.versionsPath, [...versions.slice(0, -1), { ...current, images }]);
}

/** Names the files that do not go back, in a roll back or when the old version serves again. */
export async function noteFilesKept(rollout: Rollout): Promise<void> {
  const { version, current, services, contents } = rollout;
  for (const service of services) {
    const { [service.name]: now = {} } = await contents;
    if (now === null) continue;
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
    const isNamed = (network: string) => names.includes(network);
    const running = containers.filter((one) => one.service === service.name && one.status === "running");
    const current = running.filter(({ configHash }) => hashes.has(configHash));
    // A container that a user took off a network is on no other one instead.
    const isElsewhere = (name: string) =>
      current.some(({ addresses }) => !addresses.has(name) && ![...addresses.keys()].every(isNamed));
    const missing = names.find(isElsewhere);
    if (missing) throw networkChanged(`${service.name} is not on ${missing}, as by the compose file.`);
  }
  const defined = Object.values(model.volumes ?? {}).filter(({ external }) => !external);
  if (defined.length === 0) return;
  const path = `/volumes?${filteredBy({ label: [`com.docker.compose.project=${project.name}`] })}`;
  const { Volumes } = await getJson<{ readonly Volumes: readonly Volume[] | null }>(engine, path);
  for (const volume of defined) {
    const { name } = volume;
    const present = Volumes?.find(({ Name }) => Name === name);
    const changed = present === undefined ? [] : changesOf(present, volume);
    if (changed.length === 0) continue;
    const detail = `The volume ${name} must be recreated, because its part of the compose file changed, and what Docker keeps in it is deleted by that. Undo that change to keep it; or save what you need of it, and on the machine: docker compose down && docker volume rm ${name} && docker compose up -d. No container was touched.`;
    throw new ProblemError({
      code: "volume_changed",
      detail,
      evidence: [`volume ${name}: ${changed.join(", ")} changed`],
    });
  }
}

/** A volume as the engine has it. */
interface Volume extends Listed {
  readonly Driver: string;
  readonly Options: Readonly<Record<string, string>> | null;
}

/**
 * What of a volume the compose file has changed, without the values, which may be passwords. It is compared with the volume itself if
 * compose's hash differs: versions of compose may compute it differently.
 */
function changesOf(
  { Labels, Driver, Options }: Volume,
  { name, driver = "local", ...rest }: ComposeResource,
): readonly string[] {
  const known = Labels?.[hashLabel];
  if (known === undefined || known === composeHash({ name, driver, ...rest })) return [];
  const { driver_opts = {}, labels = {} }: typeof rest = JSON.parse(plainText(JSON.stringify(rest)));
  const own = Object.entries(Labels ?? {}).filter(([label]) => !label.startsWith("com.docker.compose."));
  const parts = [
    ["driver", Driver, driver],
    ["driver_opts", { ...Options }, { ...driver_opts }],
    ["labels", Object.fromEntries(own), { ...labels }],
  ] as const;
  return parts.flatMap(([part, has, wanted]) => (isDeepStrictEqual(has, wanted) ? [] : [part]));
}
