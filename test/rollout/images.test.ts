import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { resolveDigests } from "../../src/platform/compose.ts";
import {
  commitOf,
  nameImages,
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
import { engineWith, sampleService, watchedEngine } from "./sample.ts";

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
