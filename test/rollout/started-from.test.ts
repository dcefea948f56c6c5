import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type ComposeModel, serviceHashes } from "../../src/platform/compose.ts";
import { outcomeOf } from "../../src/rollout/report.ts";
import {
  changeOf,
  readContents,
  recordLeft,
  refuseChangedParts,
  withContents,
  withStarted,
} from "../../src/rollout/started-from.ts";
import { type Contents, readVersions, writeVersions } from "../../src/rollout/state.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { engineWith, sampleContainer, sampleRollout, sampleService } from "./sample.ts";

const git = (directory: string, ...args: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=a@example.org", ...args], { cwd: directory });
const commit = (directory: string) => {
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "change");
};

test("files that git tracks and inline texts count, by any path to them; all else is data", async (t) => {
  const root = temporaryDirectory(t);
  const directory = join(root, "deploy");
  const at = (path: string) => join(root, path);
  git(root, "init", "--quiet");
  for (const path of ["deploy", "conf", "data"]) mkdirSync(at(path));
  for (const path of ["conf/a", "conf/b", "file", "deploy/inner", ".gitkeep"]) writeFileSync(at(path), "1");
  symlinkSync("conf", at("link"));
  writeFileSync(at(".gitignore"), "data\n");
  commit(root);
  writeFileSync(at("data/rows"), "1");
  const paths = ["conf", "link", "file", "deploy/inner", "data", "missing"].map(at);
  const volumes = [...paths, "/etc/hostname"].map((source) => ({
    type: "bind",
    source,
    target: "/x",
    read_only: true,
  }));
  const uses = { configs: [{ source: "text" }, { source: "path" }], secrets: [{ source: "variable" }] };
  const model = (text: string): ComposeModel => ({
    name: "shop",
    services: { app: { volumes, ...uses } },
    configs: { text: { content: text }, path: { file: at("conf/b") } },
    secrets: { variable: { environment: "SECRET" } },
  });
  const read = async (text = "1", SECRET = "1") =>
    (await readContents({ ...sampleRollout(directory), env: { ...process.env, SECRET } }, model(text))).app ??
    {};
  const before = await read();
  const changed = async (after: Promise<Record<string, string>>) =>
    Object.entries(await after).flatMap(([name, id]) => (before[name] === id ? [] : [name]));
  const names = ["../conf", "../conf/b", "../file", "../link", "config text", "inner", "secret variable"];
  assert.deepEqual(Object.keys(before).sort(), names);
  assert.deepEqual(await changed(read("2", "1")), ["config text"]);
  assert.deepEqual(await changed(read("1", "2")), ["secret variable"]);
  for (const path of ["data/rows", ".gitkeep", "conf/untracked"]) writeFileSync(at(path), "2");
  assert.deepEqual(await changed(read()), []);
  writeFileSync(at("file"), "2");
  assert.deepEqual(await changed(read()), ["../file"]);
  writeFileSync(at("conf/b"), "2");
  commit(root);
  assert.deepEqual((await changed(read())).sort(), ["../conf", "../conf/b", "../file", "../link"]);
});

const readOnly = (source: string) => ({ type: "bind", source, target: source, read_only: true });

test("a submodule's file counts by the submodule's own commit; a clone that git ignores is data", async (t) => {
  const [root, other] = [temporaryDirectory(t), temporaryDirectory(t)];
  for (const directory of [root, other]) git(directory, "init", "--quiet");
  mkdirSync(join(other, "conf"));
  writeFileSync(join(other, "conf/a"), "1");
  commit(other);
  git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub");
  git(root, "clone", "--quiet", other, "clone");
  writeFileSync(join(root, ".gitignore"), "clone\n");
  commit(root);
  const volumes = ["sub", "sub/conf", "sub/conf/a", "clone/conf"].map((path) => readOnly(join(root, path)));
  const on = { ...sampleRollout(root), env: process.env };
  const read = async () =>
    (await readContents(on, { name: "shop", services: { app: { volumes } } })).app ?? {};
  const before = await read();
  assert.deepEqual(Object.keys(before), ["sub", "sub/conf", "sub/conf/a"]);
  writeFileSync(join(root, "sub/conf/a"), "2");
  commit(join(root, "sub"));
  for (const [name, id] of Object.entries(await read())) assert.notEqual(id, before[name]);
});

test("if git fails, it is not known what a service mounts that mounts from the checkout", async (t) => {
  const directory = temporaryDirectory(t);
  git(directory, "init", "--quiet");
  writeFileSync(join(directory, "file"), "1");
  commit(directory);
  const volumes = [readOnly(join(directory, "file"))];
  const services = { app: { volumes }, db: { volumes: [readOnly("/etc")] } };
  const on = { ...sampleRollout(directory), env: { PATH: "" } };
  assert.deepEqual(await readContents(on, { name: "shop", services }), { app: null });
});

const containers = [sampleContainer()];
const started = (ids: readonly string[], content: string) => {
  const image = { image: "shop-app", id: "sha256:1", tag: "", containers: ids, contents: { conf: content } };
  return { commit: "1".repeat(40), finishedAt: "", images: { app: image } };
};

test("a changed file replaces a service; of a container that Hotpush does not know, one that is recreated stays", async (t) => {
  const rollout = sampleRollout(temporaryDirectory(t));
  const notes: string[] = [];
  const change = (
    current: ReturnType<typeof started> | null,
    how: "roll" | "recreate" = "roll",
    now: Contents | null = { conf: "2" },
  ) => {
    const mode = how === "roll" ? { how } : { how, reason: "port" };
    const contents = Promise.resolve({ app: now });
    const report = (event: object) => notes.push(JSON.stringify(event));
    const on = {
      ...rollout,
      service: sampleService({ mode }),
      current,
      contents,
      report,
      directedBy: null,
    };
    return changeOf(on, containers);
  };
  assert.equal(await change(started(["id-1"], "2")), null);
  assert.equal(await change(started(["id-1"], "1")), "conf changed");
  assert.equal(await change(started(["id-1"], "1"), "recreate"), "conf changed");
  assert.match((await change(started(["id-0"], "2"))) ?? "", /conf is not known/);
  assert.match((await change(null)) ?? "", /conf is not known/);
  assert.deepEqual(notes, []);
  assert.equal(await change(started(["id-0"], "1"), "recreate"), null);
  assert.match(notes.join(), /stays: whether .* conf is not known.*docker compose stop app/);
  notes.length = 0;
  assert.equal(await change(started(["id-0"], "1"), "recreate", { "config text": "2" }), null);
  assert.match(notes.join(), /--force-recreate app/);
  notes.length = 0;
  assert.equal(await change(started(["id-1"], "1"), "recreate", null), null);
  assert.match(notes.join(), /stays: whether .* files is not known/);
  assert.match((await change(started(["id-1"], "1"), "roll", null)) ?? "", /is not known/);
});

/** A roll-out before which the containers `before` ran, and after which those of `now` do. */
function rolloutFrom(directory: string, before: readonly string[], now: readonly string[]) {
  const inspected = (Id: string) => {
    const Labels = { "com.docker.compose.service": "app" };
    return { Id, Name: Id, Config: { Labels }, State: { Status: "running" } };
  };
  const engine = engineWith((path) =>
    path.includes("json?") ? now.map((Id) => ({ Id })) : inspected(path.split("/")[2] ?? ""),
  );
  const running = before.map((id) => sampleContainer({ id }));
  return { ...sampleRollout(directory), engine, services: [sampleService()], containers: running };
}

test("what a container was started from is recorded if it was started now, or is known to be the same", async (t) => {
  const directory = temporaryDirectory(t);
  const recorded = async (
    [before, now]: readonly [readonly string[], readonly string[]],
    current: ReturnType<typeof started> | null,
    contents: Contents | null = { conf: "2" },
    status: "running" | "exited" = "running",
  ) => {
    const rollout = rolloutFrom(directory, before, now);
    const ran = rollout.containers.map((one) => ({ ...one, status }));
    const on = { ...rollout, containers: ran, current, contents: Promise.resolve({ app: contents }) };
    const { app } = await withContents(on, started([], "").images);
    return [app?.containers, app?.contents];
  };
  const left = [["x"], ["x"]] as const;
  assert.deepEqual(await recorded([["x"], ["y"]], started(["x"], "1")), [["y"], { conf: "2" }]);
  assert.deepEqual(await recorded(left, started(["x"], "2")), [["x"], { conf: "2" }]);
  // In a roll back, for one.
  assert.deepEqual(await recorded(left, started(["x"], "1")), [["x"], { conf: "1" }]);
  assert.deepEqual(await recorded(left, started(["w"], "2")), [["w"], { conf: "2" }]);
  assert.deepEqual(await recorded(left, null), [[], {}]);
  // It was stopped, and mounts what is there when it starts; what was copied into it stays.
  assert.deepEqual(await recorded(left, null, { conf: "2" }, "exited"), [["x"], { conf: "2" }]);
  assert.deepEqual(await recorded(left, null, { "config text": "2" }, "exited"), [[], {}]);
  assert.deepEqual(await recorded([["x"], ["y"]], started(["x"], "1"), null), [["x"], { conf: "1" }]);
});

test("a roll-out that fails records what it leaves, so that the next one sees what changes from there", async (t) => {
  const rollout = {
    ...rolloutFrom(temporaryDirectory(t), ["x"], ["y"]),
    contents: Promise.resolve({ app: { conf: "2" } }),
  };
  await recordLeft(rollout, []);
  assert.deepEqual(await readVersions(rollout.versionsPath), []);
  await writeVersions(rollout.versionsPath, [started(["w"], "0"), started(["x"], "1")]);
  await recordLeft(rollout, []);
  const versions = [started(["w"], "0"), started(["y"], "2")];
  assert.deepEqual(await readVersions(rollout.versionsPath), versions);
  const copied = {
    ...rolloutFrom(rollout.target.projectDirectory, ["y"], ["z"]),
    contents: Promise.resolve({ app: { "config text": "3" } }),
  };
  await recordLeft(copied, []);
  assert.deepEqual(await readVersions(rollout.versionsPath), versions);
  await recordLeft(copied, [outcomeOf(sampleService(), "recreated", {})]);
  assert.deepEqual((await readVersions(rollout.versionsPath)).at(-1)?.images.app?.containers, ["z"]);
});

test("a version that serves again has its own images, and the files that its containers were started from", () => {
  const version = started(["x"], "1");
  assert.deepEqual(withStarted(version, started(["y"], "2").images), started(["y"], "2"));
  assert.deepEqual(withStarted(version, {}), version);
});

test("a container on another network than the one of the file ends the roll-out, one that is on none does not", async (t) => {
  const service = { networks: { inner: null, outer: null } };
  const networks = { inner: { name: "shop_inner" }, outer: { name: "shop_outer" } };
  const [configHash = ""] = serviceHashes(service, new Map());
  const refuse = (...attached: readonly string[]) => {
    const addresses = new Map(attached.map((name) => [name, "172.18.0.2"]));
    return refuseChangedParts({
      ...sampleRollout(temporaryDirectory(t)),
      services: [sampleService()],
      model: { name: "shop", services: { app: service }, networks },
      containers: [sampleContainer({ configHash, addresses })],
    });
  };
  await refuse("shop_inner", "shop_outer");
  await refuse("shop_inner");
  await refuse();
  await assert.rejects(refuse("shop_inner", "old"), isProblem("network_changed"));
});
