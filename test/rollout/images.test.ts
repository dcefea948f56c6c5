import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { commitOf, nameImages, requireDiskSpace } from "../../src/rollout/images.ts";
import { randomCommit } from "../harness/delivery.ts";
import { isProblem } from "../harness/problems.ts";
import { makeRepository } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { sampleService, watchedEngine } from "./sample.ts";

const image = (name: string) => ({ image: name, id: `sha256:${name}`, tag: name });
const services = [
  sampleService(),
  sampleService({ name: "web", image: "web:1.3", isBuilt: false }),
  sampleService({
    name: "db",
    image: "postgres:18",
    isBuilt: false,
    replacement: { how: "recreate", reason: "x" },
  }),
];
const images = {
  app: image("shop-app:0a1b"),
  web: image("web:1.2"),
  db: image("postgres:17"),
};
const version = { commit: "0a1b", finishedAt: "2026-01-01T00:00:00Z", images };

test("a roll back renames images, but not those of databases", async () => {
  const told: string[] = [];
  const { engine, posted } = watchedEngine();
  const report = (event: { readonly event: string }) => told.push(JSON.stringify(event));
  await nameImages({ engine, report }, services, version);
  assert.deepEqual(posted, [
    "/images/sha256:shop-app:0a1b/tag?repo=shop-app&tag=latest",
    "/images/sha256:web:1.2/tag?repo=web&tag=1.3",
  ]);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /goes back to web:1\.2, which the name web:1\.3 stands for here from now on/);
});

const pinned = sampleService({ name: "web", image: "web@sha256:2", isBuilt: false, hasBuild: false });

test("an image that the compose file names by digest stays, with a note", async () => {
  const told: string[] = [];
  const { engine, posted } = watchedEngine();
  const report = (event: { readonly event: string }) => told.push(JSON.stringify(event));
  await nameImages({ engine, report }, [sampleService(), pinned], version);
  assert.deepEqual(posted, ["/images/sha256:shop-app:0a1b/tag?repo=shop-app&tag=latest"]);
  assert.match(told.join(), /"service":"web","text":"stays: .* by the digest, web@sha256:2"/);
});

test("a migration keeps its image in a roll back", async () => {
  const { engine, posted } = watchedEngine();
  const migrate = sampleService({ name: "migrate", image: "shop-migrate", replacement: { how: "run-once" } });
  const then = { ...version, images: { ...images, migrate: image("shop-migrate:0a1b") } };
  await nameImages({ engine, report: () => {} }, [migrate, sampleService()], then);
  assert.deepEqual(posted, ["/images/sha256:shop-app:0a1b/tag?repo=shop-app&tag=latest"]);
});

const engine: Engine = (() => {
  const get = async () => Buffer.from(JSON.stringify({ DockerRootDir: tmpdir() }));
  return { get, post: get, delete: get };
})();

test("HOTPUSH_MIN_FREE says how much disk space is needed, and a wrong one is refused", async () => {
  const need = (HOTPUSH_MIN_FREE: string) => requireDiskSpace({ engine, env: { HOTPUSH_MIN_FREE } });
  await need("1 MiB");
  await assert.rejects(need("3000 GiB"), isProblem("disk_full", /needs 3000 GiB .* GiB are left/));
  await assert.rejects(need("lots"), isProblem("configuration_invalid", /HOTPUSH_MIN_FREE is "lots"/));
});

test("images are named after the commit checked out, not after the one that was pushed", async (t) => {
  const { directory, write, commit } = makeRepository(t);
  const pushed = commit("What the push named");
  write("deploy/compose.yaml", "services: {}\n");
  const tip = commit("What the branch had reached when the script pulled");
  for (const project of [directory, join(directory, "deploy")])
    assert.equal(await commitOf(project, undefined, environment(pushed)), tip);
});

test("--commit is taken as it is, and DEPLOY_COMMIT only outside of git", async (t) => {
  const { directory, commit } = makeRepository(t);
  const tip = commit();
  const named = randomCommit();
  const pushed = randomCommit();
  const outside = temporaryDirectory(t);
  assert.equal(await commitOf(directory, named.toUpperCase(), environment(pushed)), named);
  assert.equal(await commitOf(directory, "not a commit", environment(pushed)), tip);
  assert.equal(await commitOf(outside, undefined, environment(pushed)), pushed);
  assert.match(await commitOf(outside, undefined, environment("--help")), /^\d{12}$/);
});

function environment(commit: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, DEPLOY_COMMIT: commit };
}
