import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadImageNames, nameSeparator, resolveDigests } from "../../src/platform/compose.ts";
import { EngineRefusal } from "../../src/platform/docker/engine.ts";
import {
  commitOf,
  imagesInUse,
  nameImages,
  nameServingImages,
  prepareImages,
  recordFirstVersion,
  recordVersion,
  requireDiskSpace,
  watchedImages,
} from "../../src/rollout/images.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { readVersions } from "../../src/rollout/state.ts";
import { randomCommit } from "../harness/delivery.ts";
import { isProblem } from "../harness/problems.ts";
import { makeRepository } from "../harness/repository.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { engineWith, sampleContainer, sampleRollout, sampleService, watchedEngine } from "./sample.ts";

const image = (name: string) => ({ image: name, id: `sha256:${name}`, tag: name });
const recreated = { how: "recreate", reason: "x" } as const;
const services = [
  sampleService(),
  sampleService({ name: "web", image: "web:1.3", isBuilt: false }),
  sampleService({ name: "pinned", image: "pinned@sha256:2", isBuilt: false, hasBuild: false }),
  sampleService({ name: "db", image: "postgres:18", isBuilt: false, mode: recreated }),
  sampleService({ name: "migrate", image: "shop-migrate", mode: { how: "run-once" } }),
];
const images = {
  app: image("shop-app:0a1b"),
  web: image("web:1.2"),
  pinned: image("pinned:1"),
  db: image("postgres:17"),
  migrate: image("shop-migrate:0a1b"),
};

test("a roll back renames images, but not of databases, migrations or those named by digest", async () => {
  const told: (string | null)[] = [];
  const { engine, posted } = watchedEngine();
  const report = (event: RolloutEvent) => event.event === "note" && told.push(event.service);
  await nameImages({ engine, report }, services, { commit: "0a1b", finishedAt: "", images });
  assert.deepEqual(posted, [
    "/images/sha256:shop-app:0a1b/tag?repo=shop-app&tag=latest",
    "/images/sha256:web:1.2/tag?repo=web&tag=1.3",
  ]);
  assert.deepEqual(told, ["web", "pinned"]);
});

test("a roll back reports the images that serve, and records the version that it went to", async (t) => {
  const versionsPath = join(temporaryDirectory(t), "versions.json");
  const version = { commit: "0a1b", finishedAt: "", images };
  const serving = { ...images, db: image("postgres:18") };
  const events: RolloutEvent[] = [];
  const report = (event: RolloutEvent) => events.push(event);
  await recordVersion({ version, versionsPath, commit: "0a1b", report }, async () => serving);
  const [event] = events;
  const db = event?.event === "version" && event.images.find(({ service }) => service === "db");
  assert.deepEqual(db, { service: "db", image: "postgres:18", id: "sha256:postgres:18" });
  assert.deepEqual((await readVersions(versionsPath)).at(-1)?.images, images);
});

test("HOTPUSH_MIN_FREE says how much disk space is needed, and a wrong one is refused", async () => {
  const engine = engineWith(() => ({ DockerRootDir: tmpdir() }));
  const need = (HOTPUSH_MIN_FREE: string) => requireDiskSpace({ engine, env: { HOTPUSH_MIN_FREE } });
  await need("1 MiB");
  await assert.rejects(need("3000 GiB"), isProblem("disk_full"));
  await assert.rejects(need("lots"), isProblem("configuration_invalid"));
});

test("images are named after the commit checked out, or --commit; the one pushed counts outside of git", async (t) => {
  const { directory, write, commit } = makeRepository(t);
  const outside = temporaryDirectory(t);
  const named = randomCommit();
  const pushed = commit("What the push named");
  write("deploy/compose.yaml", "services: {}\n");
  const tip = commit("What the branch had reached when the script pulled");
  for (const [project, given, DEPLOY_COMMIT, expected] of [
    [directory, undefined, pushed, tip],
    [join(directory, "deploy"), undefined, pushed, tip],
    [directory, named.toUpperCase(), pushed, named],
    [directory, "not a commit", pushed, tip],
    [outside, undefined, pushed, pushed],
  ] as const)
    assert.equal(await commitOf(project, given, { PATH: process.env.PATH, DEPLOY_COMMIT }), expected);
  assert.match(await commitOf(outside, undefined, { DEPLOY_COMMIT: "--help" }), /^\d{12}$/);
});

/** The running container of the service, as the engine describes it, with an image of that many names; null: that is gone. */
function engineOf(service: string, health: string, tags: readonly string[] | null) {
  const posted: string[] = [];
  const labels = { "com.docker.compose.service": service, "com.docker.compose.container-number": "2" };
  const engine = engineWith((path) => {
    if (path.startsWith("/containers/json")) return [{ Id: "c" }];
    if (!path.startsWith("/images/"))
      return {
        Id: "c",
        Name: "/c",
        Image: "sha256:c",
        Config: { Image: `shop-${service}`, Labels: labels },
        State: { Status: "running", ExitCode: 0, Health: { Status: health, Log: [] } },
      };
    if (tags === null || !path.includes(encodeURIComponent("sha256:c")))
      throw new EngineRefusal(404, "No such image");
    return { Id: "sha256:c", RepoTags: tags };
  });
  const post = async (path: string) => {
    posted.push(decodeURIComponent(path));
    return Buffer.alloc(0);
  };
  return { engine: { ...engine, post }, posted };
}

test("an image of a container that Docker calls starting is in use, by its name of this commit", async () => {
  const byCommit = ["shop-app:0123456789ab", "shop-app:ba9876543210"];
  const { engine } = engineOf("app", "starting", ["shop-app:latest", ...byCommit]);
  const project = { name: "shop", services: [] };
  const [image] = await imagesInUse({ engine, project, commit: "0123456789ab".padEnd(40, "c") });
  assert.equal(image?.tag, byCommit[0]);
});

test("what serves gets a name before a build; what Docker has dropped is reported, and no version", async (t) => {
  const events: RolloutEvent[] = [];
  const project = { name: "shop", services: [sampleService()] };
  const on = (given: ReturnType<typeof engineOf>) => ({
    ...sampleRollout(temporaryDirectory(t)),
    engine: given.engine,
    project,
    containers: [sampleContainer({ image: "sha256:c" })],
    report: (event: RolloutEvent) => events.push(event),
  });
  const [unnamed, named, dropped] = [["shop-app:latest"], ["shop-app:0123456789ab"], null].map((tags) =>
    engineOf("app", "healthy", tags),
  );
  assert.ok(unnamed && named && dropped);
  for (const given of [unnamed, named, dropped]) await nameServingImages(on(given));
  assert.match(unnamed.posted.join(), /^\/images\/sha256:c\/tag\?repo=shop-app&tag=\d{12}$/);
  assert.deepEqual([named.posted, dropped.posted], [[], []]);
  assert.deepEqual(
    events.map(({ event }) => event),
    ["note"],
  );
  assert.equal(await recordFirstVersion(on(dropped)), null);
});

test("images of hooks are pulled before anything is touched, if they are missing and not built here", async (t) => {
  const directory = temporaryDirectory(t);
  const called = join(directory, "called");
  writeScript(join(directory, "docker"), `#!/bin/sh\necho "$* $(cat)" >>'${called}'\n`);
  const { engine } = engineOf("app", "healthy", ["shop-app:latest"]);
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const service = sampleService({
    image: "sha256:c",
    hookImages: ["migrate:3"],
    hasBuild: false,
    isBuilt: false,
  });
  await prepareImages({ ...sampleRollout(directory), engine, env }, [service]);
  assert.match(readFileSync(called, "utf8"), /--file - pull \{.*"image":"migrate:3"/);
  rmSync(called);
  const builder = sampleService({ name: "tools", image: "migrate:3" });
  const off = { ...service, hookImages: ["off:1"], replicas: 0 };
  const services = [service, builder, off];
  const rollout = { ...sampleRollout(directory), engine, env, project: { name: "shop", services } };
  await assert.rejects(prepareImages(rollout, services), isProblem("build_failed"), "no real build");
  assert.doesNotMatch(readFileSync(called, "utf8"), / pull/);
});

test("the names of images are read without the env files of services that are not started", async (t) => {
  const directory = temporaryDirectory(t);
  // As compose 5 does.
  const compose =
    '#!/bin/sh\ncase "$*" in *--no-env-resolution) echo shop-app ;; *) echo "env file dev.env not found" >&2; exit 14 ;; esac\n';
  writeScript(join(directory, "docker"), compose);
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const options = { target: { projectDirectory: directory, files: [] }, env };
  assert.deepEqual(await loadImageNames(options), ["shop-app"]);
  writeScript(join(directory, "docker"), "#!/bin/sh\necho yaml: line 1 >&2; exit 15\n");
  await assert.rejects(loadImageNames(options), isProblem("compose_invalid"));
  assert.equal(nameSeparator(options), "-");
  writeFileSync(join(directory, ".env"), "COMPOSE_COMPATIBILITY=true\n");
  assert.equal(nameSeparator(options), "_");
  assert.equal(nameSeparator({ ...options, env: { COMPOSE_COMPATIBILITY: "0" } }), "-");
});

const pulled = (image: string) => sampleService({ image, isBuilt: false, hasBuild: false });

test("images that CI may push are watched, once each; not databases, digests and official ones", () => {
  const services = [
    sampleService({ image: "ghcr.io/team/built:main" }),
    pulled("ghcr.io/team/app:main"),
    { ...pulled("ghcr.io/team/app:main"), name: "worker" },
    pulled("team/site"),
    pulled("redis:7"),
    pulled("ghcr.io/team/app@sha256:1"),
    { ...pulled("team/database:18"), mode: { how: "recreate", reason: "volume /data" } as const },
    { ...pulled("team/migration:main"), mode: { how: "run-once" } as const },
    { ...pulled("team/off:main"), replicas: 0 },
  ];
  assert.deepEqual(watchedImages(services), ["ghcr.io/team/app:main", "team/site"]);
});

test("a registry that does not answer within a minute is given up", async (t) => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const minute = t.mock.method(AbortSignal, "timeout", () => timeout(1));
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), "#!/bin/sh\nsleep 600\n");
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const options = { target: { projectDirectory: directory, files: [] }, env };
  const { signal } = new AbortController();
  const resolving = resolveDigests({ ...options, signal }, ["team/app:main"]);
  await assert.rejects(resolving, isProblem("image_pull_failed", /no answer within 60 s/));
  assert.deepEqual(minute.mock.calls[0]?.arguments, [60_000]);
});
